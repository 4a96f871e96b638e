#include "port/audience.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "port/connection.hpp"
#include "resp/command_table.hpp"
#include "resp/glob.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::port {
namespace {

/// A message to all who hear it, written once in each protocol.
class Announcement {
 public:
  template <class... Words>
  explicit Announcement(const Words&... words) {
    for (const int protocol : {2, 3}) {
      resp::ReplyWriter writer{forms_[protocol - 2], protocol};
      writer.push(sizeof...(words));
      writer.items(words...);
    }
  }
  void tell(Connection& connection) const {
    connection.say(forms_[connection.session().protocol - 2]);
  }

 private:
  std::string forms_[2];
};

}  // namespace

bool Audience::listen(Connection& connection, Listening kind, std::string_view name) {
  return of(kind)[std::string{name}].insert(&connection).second;
}

bool Audience::leave(Connection& connection, Listening kind, std::string_view name) {
  const auto found = of(kind).find(name);
  if (found == of(kind).end()) return false;
  const bool was_there = found->second.erase(&connection) > 0;
  if (found->second.empty()) of(kind).erase(found);
  return was_there;
}

std::vector<std::string_view> Audience::names(Listening kind) const {
  std::vector<std::string_view> names;
  for (const auto& [name, connections] : of(kind)) names.push_back(name);
  return names;
}

std::size_t Audience::count(Listening kind, std::string_view name) const {
  const auto found = of(kind).find(name);
  return found == of(kind).end() ? 0 : found->second.size();
}

std::size_t Audience::receivers(std::string_view channel, bool sharded) const {
  if (sharded) return count(Listening::shard, channel);
  auto all = count(Listening::channel, channel);
  for (const auto& [pattern, connections] : of(Listening::pattern))
    if (resp::glob_matches(pattern, channel)) all += connections.size();
  return all;
}

void Audience::publish(const engine::Context::Published& message) {
  const auto& listeners = of(message.sharded ? Listening::shard : Listening::channel);
  if (const auto found = listeners.find(message.channel); found != listeners.end()) {
    const Announcement announcement{
        message.sharded ? std::string_view{"smessage"} : std::string_view{"message"},
        std::string_view{message.channel}, std::string_view{message.payload}};
    for (Connection* const connection : found->second) announcement.tell(*connection);
  }
  if (message.sharded) return;
  for (const auto& [pattern, connections] : of(Listening::pattern)) {
    if (!resp::glob_matches(pattern, message.channel)) continue;
    const Announcement announcement{std::string_view{"pmessage"}, std::string_view{pattern},
                                    std::string_view{message.channel},
                                    std::string_view{message.payload}};
    for (Connection* const connection : connections) announcement.tell(*connection);
  }
}

void Audience::monitor(Connection& connection) {
  monitors_.insert(&connection);
  monitor_count_ = monitors_.size();
}

void Audience::end_monitor(Connection& connection) {
  monitors_.erase(&connection);
  monitor_count_ = monitors_.size();
}

void Audience::tell_monitors(const Connection& by, Words words, std::int64_t now_us) {
  auto text = fmt::format("+{}.{:06} [{} {}]", now_us / 1'000'000, now_us % 1'000'000,
                          by.session().database, by.address());
  for (const auto word : words) text += ' ' + to_string(Value::bulk_string(std::string{word}));
  text += "\r\n";
  for (Connection* const monitor : monitors_)
    if (monitor != &by) monitor->say(text);
}

void Audience::watch(Watching& watching, engine::KeyOfDatabase key, bool is_there) {
  watched_[key].insert(&watching);
  watching.keys.emplace(std::move(key), is_there);
}

void Audience::unwatch(Watching& watching) {
  for (const auto& [key, was_there] : watching.keys) {
    const auto found = watched_.find(key);
    found->second.erase(&watching);
    if (found->second.empty()) watched_.erase(found);
  }
  watching = {};
}

void Audience::touch(const engine::KeyOfDatabase& key, const engine::Session* by) {
  if (!trackers_.empty()) trackers_.changed(key.key, by);
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  for (Watching* const watching : found->second) watching->is_dirty = true;
}

void Audience::touch_all(std::optional<int> database) {
  for (const auto& [key, watchings] : watched_) {
    if (database && key.database != *database) continue;
    for (Watching* const watching : watchings)
      if (watching->keys.at(key) || engine_.has_key(key)) watching->is_dirty = true;
  }
}

void Audience::touch_changed(std::string_view name, Words words, std::span<const std::size_t> keys,
                             int database, const engine::Session* by) {
  const auto touch_at = [&](std::size_t at, int in) { touch({in, std::string{words[at]}}, by); };
  if (name == "copy") {
    const bool elsewhere = words.size() > 4 && resp::is_word(words[3], "db");
    return touch_at(2, elsewhere ? parse_integer<int>(words[4]).value_or(database) : database);
  }
  if (name == "move") touch_at(1, parse_integer<int>(words[2]).value_or(database));
  // Others than the first are read alone.
  if (name == "bitop" || name == "pfmerge" || name.ends_with("store")) keys = keys.first(1);
  if (name == "sort" || name.starts_with("georadius")) keys = keys.last(1);
  for (const auto at : keys) touch_at(at, database);
}

void Audience::changed(const std::vector<std::vector<std::string>>& effects, int database,
                       const engine::Session* by) {
  if (!wants_effects()) return;
  std::vector<std::size_t> positions;
  for (const auto& effect : effects) {
    const std::vector<std::string_view> words{effect.begin(), effect.end()};
    if (words[0] == "SELECT") {
      database = parse_integer<int>(words[1]).value_or(0);
      continue;
    }
    const auto* const spec = resp::find_command(words);
    if (!spec) continue;
    if (spec->name == "flushdb" || spec->name == "flushall" || spec->name == "swapdb") {
      std::vector<std::optional<int>> databases{std::nullopt};
      if (spec->name == "flushdb") databases = {database};
      if (spec->name == "swapdb")
        databases = {parse_integer<int>(words[1]), parse_integer<int>(words[2])};
      for (const auto in : databases) touch_all(in);
      trackers_.all_changed();
      continue;
    }
    if (!resp::keys_of(*spec, words, positions) || positions.empty()) continue;
    touch_changed(spec->name, words, positions, database, by);
  }
}

}  // namespace sluice::port
