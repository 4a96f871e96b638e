#include "redis/cluster_route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/hash_slot.hpp"
#include "resp/command_table.hpp"
#include "resp/server_words.hpp"
#include "store/reply_error.hpp"

namespace sluice::redis {
namespace {

struct Row {
  std::string_view name;
  Route::To to;
  Merge merge = Merge::first;
};

/// Commands without a key. As the proxy serves them, but that a Store's user is the operator.
constexpr Row rows[] = {
    {"acl|cat", Route::To::any},
    {"acl|genpass", Route::To::any},
    {"acl|whoami", Route::To::any},
    {"cluster|countkeysinslot", Route::To::any},
    {"cluster|info", Route::To::any},
    {"cluster|keyslot", Route::To::any},
    {"cluster|nodes", Route::To::any},
    {"cluster|shards", Route::To::any},
    {"cluster|slots", Route::To::any},
    {"command", Route::To::any},
    {"config|get", Route::To::any},
    {"config|set", Route::To::every},
    {"dbsize", Route::To::every, Merge::sum},
    {"echo", Route::To::any},
    {"flushall", Route::To::every},
    {"flushdb", Route::To::every},
    {"function|delete", Route::To::every},
    {"function|dump", Route::To::any},
    {"function|flush", Route::To::every},
    {"function|list", Route::To::any},
    {"function|load", Route::To::every},
    {"function|restore", Route::To::every},
    {"function|stats", Route::To::any},
    {"info", Route::To::any},
    {"keys", Route::To::every, Merge::concatenate},
    {"lolwut", Route::To::any},
    {"ping", Route::To::any},
    {"pubsub|channels", Route::To::every, Merge::concatenate},
    {"pubsub|shardchannels", Route::To::every, Merge::concatenate},
    {"randomkey", Route::To::any},
    {"scan", Route::To::scan},
    {"script|exists", Route::To::every, Merge::all_elements},
    {"script|flush", Route::To::every},
    {"script|load", Route::To::every},
    {"time", Route::To::any},
};

[[noreturn]] void refuse(Words command, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("{} {}", name_of_command(command), why)};
}

const Row* row_of(std::string_view name) {
  const auto same = [&](std::string_view one) {
    const auto* const found = std::ranges::find(rows, one, &Row::name);
    return found == std::end(rows) ? nullptr : found;
  };
  if (const auto* const row = same(name)) return row;
  return same(name.substr(0, name.find('|')));
}

template <class Keys>
Route route_to_slot_of(const Keys& keys, const auto& refuse_others) {
  const auto slot = hash_slot(*std::begin(keys));
  for (const auto key : keys)
    if (hash_slot(key) != slot) refuse_others(*std::begin(keys), key);
  return {.slot = slot};
}

}  // namespace

Route route_of_keys(Words keys) {
  if (keys.empty()) return {.to = Route::To::any};
  return route_to_slot_of(keys, [](std::string_view one, std::string_view other) {
    throw Error{Errc::bad_argument,
                fmt::format("the script has {} and {}, keys of different slots of the cluster; "
                            "give their names a common {{tag}}",
                            name_of_call("'", one), name_of_call("", other))};
  });
}

Route route_of(Words command) {
  if (command.empty()) throw Error{Errc::bad_argument, "a command has at least one word"};
  const auto* const spec = resp::find_command(command);
  // A module's: by the first word behind its name. A node that knows better says MOVED.
  if (!spec) {
    if (command.size() < 2) return {.to = Route::To::any};
    return {.slot = hash_slot(command[1])};
  }
  if (spec->name == "publish" && command.size() > 1) return {.slot = hash_slot(command[1])};
  std::vector<std::size_t> places;
  if (!resp::keys_of(*spec, command, places)) return {.to = Route::To::any};  // it will be refused
  if (!places.empty()) {
    std::vector<std::string_view> keys;
    for (const auto place : places) keys.push_back(command[place]);
    return route_to_slot_of(keys, [&](std::string_view one, std::string_view other) {
      refuse(command, fmt::format("has keys of different slots of the cluster, '{}' and '{}': one "
                                  "call for each slot, or a common {{tag}} in their names",
                                  one.substr(0, 100), other.substr(0, 100)));
    });
  }
  if (resp::runs_script(spec)) return {.to = Route::To::any};
  const auto* const row = row_of(spec->name);
  if (!row)
    refuse(command, "has no key that would tell which node of the cluster is meant: ask that node");
  return {.to = row->to, .slot = 0, .merge = row->merge};
}

Value merged(Merge merge, std::vector<Value> replies) {
  Value all = std::move(replies.front());
  for (auto& reply : std::span{replies}.subspan(1)) {
    switch (merge) {
      case Merge::first: break;
      case Merge::sum: all = Value::integer(all.as_integer() + reply.as_integer()); break;
      case Merge::concatenate:
        std::ranges::move(reply.as_items(), std::back_inserter(all.as_items()));
        break;
      case Merge::all_elements:
        for (std::size_t i = 0; i < std::min(all.as_items().size(), reply.as_items().size()); ++i)
          if (reply.as_items()[i].as_integer() == 0) all.as_items()[i] = Value::integer(0);
        break;
    }
  }
  return all;
}

}  // namespace sluice::redis
