/// Warnings of what a configuration may say, and seldom means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

enum class Severity : std::uint8_t {
  note,     ///< worth knowing
  warning,  ///< an outage, or an attacker, will use it
  danger,   ///< the proxy does not do what the file seems to say
};
std::string_view to_string(Severity severity) noexcept;

struct Finding {
  Severity severity;
  std::string pool;  ///< empty: the process
  std::size_t line;
  std::string rule;    ///< a word for programs: "crc32-ketama"
  std::string what;    ///< the file says
  std::string why;     ///< that matters
  std::string remedy;  ///< what to write instead
};

/// What is known of the file beside its contents.
struct FileFacts {
  std::optional<unsigned> permissions;
};

/// By severity, the worst first; among equals by line. Pure, and may take some milliseconds a pool.
std::vector<Finding> lint(const Config& config, const FileFacts& file = {});

/// "file:line: danger: pool 'alpha': what. why remedy [rule]", a line each.
std::string text_of(const std::vector<Finding>& findings, std::string_view file);
Json json_of(const std::vector<Finding>& findings);

}  // namespace sluice::proxy::config
