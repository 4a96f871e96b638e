/// The first line of a script: "#!lua flags=no-writes,allow-oom".
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace sluice::engine {

struct ScriptHeader {
  bool present = false;
  bool no_writes = false;
  std::size_t size =
      0;  ///< bytes that are not Lua; the line end after them is, so that lines keep their numbers
};

/// An error text where the line begins with "#!" and is not understood.
std::expected<ScriptHeader, std::string> read_script_header(std::string_view script);

}  // namespace sluice::engine
