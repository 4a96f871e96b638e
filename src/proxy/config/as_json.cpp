#include "proxy/config/as_json.hpp"

#include "proxy/config/settings.hpp"

namespace sluice::proxy {
namespace {

using nlohmann::json;

json as_json(const std::vector<SettingChange>& changes) {
  auto all = json::array();
  for (const auto& change : changes)
    all.push_back({{"name", change.name}, {"before", change.before}, {"after", change.after}});
  return all;
}

json as_json(const PoolDiff& pool) {
  json result{{"pool", pool.name},
              {"state", pool.added       ? "new"
                        : pool.removed   ? "gone"
                        : pool.changed() ? "changed"
                                         : "unchanged"},
              {"settings", as_json(pool.settings)},
              {"addresses", as_json(pool.addresses)}};
  if (pool.added || pool.removed || !pool.has_homes) return result;
  result["moved"] = pool.moved;
  result["exact"] = pool.exact;
  result["flows"] = json::array();
  for (const auto& flow : pool.flows)
    result["flows"].push_back({{"from", flow.from}, {"to", flow.to}, {"share", flow.share}});
  return result;
}

template <class Target>
json texts_of(const Target& target) {
  auto all = json::object();
  for_each_setting(target, [&](const SettingRow& row, auto kind, const auto& value) {
    all[std::string{row.name}] = kind.text(value);
  });
  return all;
}

}  // namespace

json as_json(const Explanation& explanation) {
  json result{{"pool", explanation.pool},
              {"hashed_part", explanation.hashed_part},
              {"hash", explanation.hash}};
  if (explanation.server.empty()) return result;
  result["point"] = explanation.point;
  result["server"] = explanation.server;
  result["address"] = explanation.address;
  return result;
}

json as_json(const ConfigDiff& diff) {
  json result{{"process", as_json(diff.process)}, {"pools", json::array()}};
  for (const auto& pool : diff.pools) result["pools"].push_back(as_json(pool));
  return result;
}

json as_json(const std::vector<Finding>& findings) {
  auto all = json::array();
  for (const auto& finding : findings)
    all.push_back({{"severity", to_string(finding.severity)},
                   {"pool", finding.pool},
                   {"line", finding.line},
                   {"rule", finding.rule},
                   {"what", finding.what},
                   {"why", finding.why},
                   {"remedy", finding.remedy}});
  return all;
}

json as_json(const Config& config) {
  json result{{"process", texts_of(config.process)}, {"pools", json::object()}};
  for (const auto& pool : config.pools) result["pools"][pool.name] = texts_of(pool);
  return result;
}

std::string written(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sluice::proxy
