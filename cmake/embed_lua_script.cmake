# Writes HEADER: the script SOURCE as a Script constant (run by cmake -P).
file(READ ${SOURCE} text)
file(SHA1 ${SOURCE} sha1)
string(REGEX REPLACE "\\.lua$" "" name ${SCRIPT})
string(REGEX REPLACE "[^a-zA-Z0-9]" "_" symbol ${name})
file(WRITE ${HEADER} "// Made from ${SCRIPT}.
#pragma once

#include \"sluice/store.hpp\"

namespace sluice::scripts {

inline constexpr Script ${symbol}{\"${name}\", R\"lua(${text})lua\", \"${sha1}\"};

}  // namespace sluice::scripts
")
