#include "lock/simulation/snapshot.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace sluice::simulation {
namespace {

Value ask(Store& store, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views{words.begin(), words.end()};
  return store.run(Words{views}).get();
}

/// Of each type: how it is read, and how it is written.
struct Form {
  std::string_view type;
  std::vector<std::string> read;
  std::vector<std::string> write;
};

Form form_of(const std::string& type, const std::string& key) {
  const std::vector<Form> forms{
      {"string", {"GET", key}, {"SET", key}},
      {"hash", {"HGETALL", key}, {"HSET", key}},
      {"list", {"LRANGE", key, "0", "-1"}, {"RPUSH", key}},
      {"set", {"SMEMBERS", key}, {"SADD", key}},
      {"zset", {"ZRANGE", key, "0", "-1", "WITHSCORES"}, {"ZADD", key}},
  };
  for (const auto& form : forms)
    if (form.type == type) return form;
  throw std::logic_error{"no snapshot of a " + type};
}

}  // namespace

Snapshot Snapshot::of(Store& store) {
  Snapshot snapshot;
  const Value keys = ask(store, {"KEYS", "*"});
  for (const auto& name : keys.as_items()) {
    const std::string& key = name.as_text();
    const std::string type = ask(store, {"TYPE", key}).as_text();
    if (type == "none") continue;
    auto [form, read, write] = form_of(type, key);
    const Value content = ask(store, read);
    if (type == "string") {
      write.push_back(content.as_text());
    } else {
      for (const auto& item : content.as_items()) {
        if (!item.is_aggregate()) {
          write.push_back(item.as_text());
        } else {  // a member and its score
          write.push_back(fmt::format("{:.17g}", item.as_items().at(1).as_number()));
          write.push_back(item.as_items().at(0).as_text());
        }
      }
    }
    snapshot.commands_.push_back(std::move(write));
    const auto ends = ask(store, {"PEXPIRETIME", key}).as_integer();
    if (ends >= 0) snapshot.commands_.push_back({"PEXPIREAT", key, std::to_string(ends)});
  }
  return snapshot;
}

void Snapshot::load_into(Store& store) const {
  ask(store, {"FLUSHALL"});
  for (const auto& command : commands_) ask(store, command);
}

}  // namespace sluice::simulation
