/// What may be dangerous about one server: its version, memory, disk and replicas.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/doctor/finding.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {

void check_server(Store& store, Findings& findings);

/// "name:value" lines of INFO.
std::map<std::string, std::string> parse_info(const std::string& text);
/// Nothing: the server does not let this user see it.
std::optional<std::string> config_of(Store& store, std::string_view parameter);

}  // namespace sluice::cli
