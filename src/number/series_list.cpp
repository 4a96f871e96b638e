#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/integer.hpp"
#include "number/layout.hpp"
#include "sluice/number.hpp"

namespace sluice {
namespace {

constexpr std::string_view keys_in_a_step = "1000";  // some 0.5 ms of the server
constexpr std::string_view suffix = ":s";

/// The other way round than number::state_key(): "{MT}:s" is of MT.
std::string name_of(std::string_view key) {
  key.remove_suffix(suffix.size());
  const bool is_braced = key.starts_with('{') && key.find('}') == key.size() - 1;
  return std::string{is_braced ? key.substr(1, key.size() - 2) : key};
}

/// Width of the counter, in "day;UTC;4;2". Empty: it is no definition of a series.
std::optional<int> digits_of(std::string_view definition) {
  if (!definition.starts_with("day;")) return std::nullopt;
  const auto zone_ends = definition.find(';', 4);
  if (zone_ends == definition.npos) return std::nullopt;
  const auto digits = leading_number<int>(definition.substr(zone_ends + 1));
  return digits >= 1 && digits <= 15 ? std::optional{digits} : std::nullopt;
}

/// Empty: the hash is another's, or has no number of this layout.
std::optional<SeriesInfo> info_of(const std::string& key, const Value& fields) {
  if (fields.is_error()) return std::nullopt;  // no hash any more
  const auto& values = fields.as_items();
  if (std::ranges::any_of(values, [](const Value& value) { return value.is_null(); }))
    return std::nullopt;
  const auto digits = digits_of(values.at(0).as_text());
  const auto taken = parse_integer<std::int64_t>(values.at(3).as_text());
  if (!digits || !taken) return std::nullopt;
  const auto& day = values.at(2).as_text();
  return SeriesInfo{.name = name_of(key),
                    .period = day,
                    .last = fmt::format("{}{}{:0{}}", values.at(1).as_text(), day, *taken, *digits),
                    .left = std::max<std::int64_t>(number::largest_of(*digits) - *taken, 0)};
}

Task<void> read_series(Store& store, std::vector<std::string> keys, SeriesList& found) {
  Batch batch;
  for (const auto& key : keys) batch.add({"HMGET", key, "definition", "prefix", "day", "taken"});
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (auto info = info_of(keys[i], replies.at(i))) found.series.push_back(std::move(*info));
}

}  // namespace

Task<SeriesList> Series::list(Store& store, std::size_t most) {
  constexpr std::size_t at_a_time = 100;
  SeriesList found;
  std::set<std::string> seen;  // SCAN may show a key twice
  std::string cursor = "0";
  do {
    auto scanning =
        store.run({"SCAN", cursor, "MATCH", "*:s", "COUNT", keys_in_a_step, "TYPE", "hash"});
    const Value step = co_await scanning;
    cursor = step.as_items().at(0).as_text();
    std::vector<std::string> keys;
    for (const auto& key : step.as_items().at(1).as_items())
      if (seen.insert(key.as_text()).second) keys.push_back(key.as_text());
    for (std::size_t at = 0; at < keys.size(); at += at_a_time) {
      const auto end = std::min(at + at_a_time, keys.size());
      std::vector<std::string> some(keys.begin() + static_cast<std::ptrdiff_t>(at),
                                    keys.begin() + static_cast<std::ptrdiff_t>(end));
      auto reading = read_series(store, std::move(some), found);
      co_await reading;
    }
    found.complete = found.series.size() <= most;
  } while (cursor != "0" && found.complete);
  std::ranges::sort(found.series, {}, &SeriesInfo::name);
  if (!found.complete) found.series.resize(most);
  co_return found;
}

}  // namespace sluice
