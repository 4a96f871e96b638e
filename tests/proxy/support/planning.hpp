/// Plans as tests look at them: with nothing in them that ends with the next one.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

using WordList = std::vector<std::string_view>;

/// "SET key value": words between blanks.
inline WordList words_of(std::string_view line) {
  WordList words;
  while (!line.empty()) {
    const auto end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

struct Planned {
  Plan plan;
  std::vector<std::size_t> keys;
  std::string reply;
};

inline Planned planned(Protocol& protocol, const WordList& words) {
  const auto plan = protocol.plan(words);
  return {plan, {plan.keys.begin(), plan.keys.end()}, std::string{plan.reply}};
}

inline Planned planned(Protocol& protocol, std::string_view line) {
  return planned(protocol, words_of(line));
}

inline PoolSettings redis_settings() {
  PoolSettings settings;
  settings.name = "alpha";
  settings.redis = true;
  return settings;
}

inline PoolSettings memcached_settings() {
  PoolSettings settings;
  settings.name = "alpha";
  return settings;
}

}  // namespace sluice::proxy
