# Writes HEADER: the script ROOT/SCRIPT, with its includes, as a Script constant (run by cmake -P).
file(READ ${ROOT}/${SCRIPT} text)
file(STRINGS ${ROOT}/${SCRIPT} includes REGEX "^-- include ")
foreach(line IN LISTS includes)
  string(REGEX REPLACE "^-- include (.*)$" "\\1" path "${line}")
  file(READ ${ROOT}/${path} included)
  string(REPLACE "${line}\n" "${included}" text "${text}")
endforeach()
string(SHA1 sha1 "${text}")
string(REGEX REPLACE "\\.lua$" "" name ${SCRIPT})
string(REGEX REPLACE "[^a-zA-Z0-9]" "_" symbol ${name})
file(WRITE ${HEADER} "// Made from ${SCRIPT}.
#pragma once

#include \"sluice/store.hpp\"

namespace sluice::scripts {

inline constexpr Script ${symbol}{\"${name}\", R\"lua(${text})lua\", \"${sha1}\"};

}  // namespace sluice::scripts
")
