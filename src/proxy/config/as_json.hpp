/// What the commands say, for programs. Names are not always UTF-8; what is not is replaced when it
/// is written.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "proxy/config/diff.hpp"
#include "proxy/config/explain.hpp"
#include "proxy/config/lint.hpp"

namespace sluice::proxy {

nlohmann::json as_json(const Explanation& explanation);
nlohmann::json as_json(const ConfigDiff& diff);
nlohmann::json as_json(const std::vector<Finding>& findings);
/// {process: {setting: text}, pools: {name: {setting: text}}}; secrets are "***".
nlohmann::json as_json(const Config& config);

/// In one line.
std::string written(const nlohmann::json& value);

}  // namespace sluice::proxy
