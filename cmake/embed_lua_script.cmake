# Writes HEADER: the scripts of ROOT/SCRIPT, with what they include, as Script constants (run by
# cmake -P). See embed_lua.cmake.

# What stands in `text` between the line "-- KIND NAME" and the next section.
function(section_of text heading out)
  string(FIND "\n${text}" "\n${heading}\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${SCRIPT}: there is no section '${heading}'")
  endif()
  string(LENGTH "${heading}\n" length)
  math(EXPR begin "${begin} + ${length}")
  string(SUBSTRING "${text}" ${begin} -1 rest)
  set(end -1)
  foreach(next IN ITEMS script part)
    string(FIND "\n${rest}" "\n-- ${next} " at)
    if(NOT at EQUAL -1 AND (end EQUAL -1 OR at LESS end))
      set(end ${at})
    endif()
  endforeach()
  string(SUBSTRING "${rest}" 0 ${end} rest)
  string(REGEX REPLACE "\n+$" "\n" rest "${rest}")
  set(${out} "${rest}" PARENT_SCOPE)
endfunction()

# Comments and margins are for those who read the source; the lines stay, so that a server's message names the right one.
function(without_comments text out)
  string(REGEX REPLACE "\n *--[^\n]*" "\n" text "\n${text}")
  string(REGEX REPLACE "\n +" "\n" text "${text}")
  string(SUBSTRING "${text}" 1 -1 text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(append_constant name text)
  string(REGEX MATCHALL "\n-- include [^\n]+" lines "\n${text}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^\n-- include ([^ ]+) ?(.*)$" "\\1" path "${line}")
    string(REGEX REPLACE "^\n-- include ([^ ]+) ?(.*)$" "\\2" part "${line}")
    file(READ ${ROOT}/${path} included)
    if(part)
      section_of("${included}" "-- part ${part}" included)
    endif()
    string(REPLACE "${line}\n" "\n${included}" text "\n${text}")
    string(SUBSTRING "${text}" 1 -1 text)
  endforeach()
  # The edition for a cluster: a message goes to those who subscribed to its shard channel, lines that begin with "-- sharded: " are no
  # comments, and src/store/unmoved.lua stands before it, unless it says that it needs no such guard. So it does before the edition for a
  # proxy, whose clients hear of a message by SUBSCRIBE.
  string(REPLACE "'PUBLISH'" "'SPUBLISH'" sharded "${text}")
  string(REPLACE "'NUMSUB'" "'SHARDNUMSUB'" sharded "${sharded}")
  string(REPLACE "-- sharded: " "" sharded "${sharded}")
  string(FIND "\n${text}" "\n-- Goes on while its slot moves: " unguarded)
  without_comments("${text}" text)
  without_comments("${sharded}" sharded)
  set(guarded "${text}")
  if(unguarded EQUAL -1)
    set(sharded "${unmoved} ${sharded}")
    set(guarded "${unmoved} ${text}")
  endif()
  string(SHA1 sha1 "${text}")
  string(REGEX REPLACE "[^a-zA-Z0-9]" "_" symbol ${name})
  set(constant "\"${name}\", R\"lua(${text})lua\", \"${sha1}\"")
  foreach(edition IN ITEMS sharded guarded)
    set(of_${edition} nullptr)
    if(edition STREQUAL guarded AND guarded STREQUAL sharded)
      set(of_guarded ${of_sharded})
    elseif(NOT ${edition} STREQUAL text)
      string(SHA1 sha1 "${${edition}}")
      set(of_${edition} &${symbol}_${edition})
      set(constants "${constants}
inline constexpr Script ${symbol}_${edition}{\"${name}\", R\"lua(${${edition}})lua\", \"${sha1}\", nullptr, true};
")
    endif()
  endforeach()
  set(constant "${constant}, ${of_sharded}, true, ${of_guarded}")
  set(constants "${constants}
inline constexpr Script ${symbol}{${constant}};
" PARENT_SCOPE)
endfunction()

file(READ ${CMAKE_CURRENT_LIST_DIR}/../src/store/unmoved.lua unmoved)
without_comments("${unmoved}" unmoved)
string(REGEX REPLACE "\n+" " " unmoved "${unmoved}")
file(READ ${ROOT}/${SCRIPT} whole)
string(REGEX MATCHALL "\n-- script [a-z_]+" headings "\n${whole}")
set(constants "")
if(headings)
  get_filename_component(folder ${SCRIPT} DIRECTORY)
  foreach(heading IN LISTS headings)
    string(SUBSTRING "${heading}" 1 -1 heading)
    string(REPLACE "-- script " "" name "${heading}")
    section_of("${whole}" "${heading}" text)
    append_constant(${folder}/${name} "${text}")
  endforeach()
else()
  string(REGEX REPLACE "\\.lua$" "" name ${SCRIPT})
  append_constant(${name} "${whole}")
endif()
file(WRITE ${HEADER} "// Made from ${SCRIPT}.
#pragma once

#include \"sluice/store.hpp\"

namespace sluice::scripts {
${constants}
}  // namespace sluice::scripts
")
