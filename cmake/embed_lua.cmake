# sluice_embed_lua(TARGET folder/file.lua ... [FROM folder])   (paths relative to src/, or to FROM)
#   Declares the scripts of each file in "<folder>/<file>.lua.hpp", as constants
#   `sluice::scripts::<folder>_<name>` of type `const Script`: name, text and SHA-1.
#
#   A file is one script of the file's name, or has sections:
#     -- script NAME    begins the script <folder>/NAME
#     -- part NAME      begins a text for scripts to include
#   A section ends with the next one. What stands before the first section is in no script.
#   A line `-- include folder/file.lua` in a script stands for that file's text, and
#   `-- include folder/file.lua NAME` for that part of it. Included text includes nothing.
#   A line `-- sharded: TEXT` is TEXT in the edition for a cluster (Script::sharded), and a comment elsewhere. That edition does nothing
#   while its slot is under way to another node (src/store/unmoved.lua), unless a line begins with `-- Goes on while its slot moves: `
#   and says why it may: each of its commands is on keys that are declared, and that it does not take away before.
function(sluice_embed_lua target)
  cmake_parse_arguments(ARG "" "FROM" "" ${ARGN})
  if(NOT ARG_FROM)
    set(ARG_FROM ${PROJECT_SOURCE_DIR}/src)
  endif()
  foreach(script IN LISTS ARG_UNPARSED_ARGUMENTS)
    set(source ${ARG_FROM}/${script})
    set(header ${PROJECT_BINARY_DIR}/generated/${script}.hpp)
    file(STRINGS ${source} includes REGEX "^-- include ")
    list(TRANSFORM includes REPLACE "^-- include ([^ ]*).*$" "${ARG_FROM}/\\1")
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DSCRIPT=${script} -DROOT=${ARG_FROM} -DHEADER=${header}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      DEPENDS ${source} ${includes} ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
              ${PROJECT_SOURCE_DIR}/src/store/unmoved.lua
      COMMENT "Embedding ${script}")
    target_sources(${target} PRIVATE ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})  # its includes may change
  endforeach()
endfunction()
