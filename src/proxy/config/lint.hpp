/// What is allowed in a configuration and seldom meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

enum class Severity : std::uint8_t {
  note,     ///< worth knowing
  warning,  ///< it will hurt on a bad day
  danger,   ///< it does not do what it says
};
std::string_view to_string(Severity severity) noexcept;

struct Finding {
  Severity severity;
  std::string pool;  ///< empty: the process
  std::size_t line;
  std::string rule;    ///< a word for programs: "crc32-ketama"
  std::string what;    ///< is so
  std::string why;     ///< it matters
  std::string remedy;  ///< what to do
};

/// What is known of the file beside its contents.
struct FileFacts {
  std::optional<unsigned> permissions;
};

/// By severity, the worst first; among equals by line. Pure, and may take some milliseconds a pool.
std::vector<Finding> lint(const Config& config, const FileFacts& file = {});

/// "file:line: danger: pool 'alpha': what. why remedy [rule]", a line each.
std::string text_of(const std::vector<Finding>& findings, std::string_view file);

}  // namespace sluice::proxy
