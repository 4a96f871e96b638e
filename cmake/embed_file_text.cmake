# Writes HEADER: the text of ROOT/FILE as a constant (run by cmake -P). See embed_file.cmake.
file(READ ${ROOT}/${FILE} text)
if(text MATCHES "[)]file\"")
  message(FATAL_ERROR "${FILE} has the end of the constant that it is to become")
endif()
get_filename_component(name ${FILE} NAME)
string(REGEX REPLACE "[^a-zA-Z0-9]" "_" symbol ${name})
file(WRITE ${HEADER} "// Made from ${FILE}.
#pragma once

#include <string_view>

namespace sluice::files {

inline constexpr std::string_view ${symbol} = R\"file(${text})file\";

}  // namespace sluice::files
")
