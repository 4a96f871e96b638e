#include "engine/core/events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/engine.hpp"
#include "engine/core/keyspace.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {
namespace {

struct Letter {
  char letter;
  std::uint32_t kinds;
};
constexpr std::uint32_t all_kinds = event_generic | event_string | event_list | event_set |
                                    event_hash | event_sorted_set | event_expired | event_evicted |
                                    event_stream | event_module;
constexpr Letter letters_of_kinds[] = {
    {'A', all_kinds},     {'g', event_generic}, {'$', event_string},     {'l', event_list},
    {'s', event_set},     {'h', event_hash},    {'z', event_sorted_set}, {'x', event_expired},
    {'e', event_evicted}, {'t', event_stream},  {'d', event_module},     {'K', event_by_key},
    {'E', event_by_name}, {'m', event_missed},  {'n', event_new}};

/// What a command tells of its first key, and of its second.
struct Row {
  std::string_view command;
  EventKind kind;
  std::string_view first;        ///< empty: nothing
  std::string_view second = {};  ///< of the second key alone
};
constexpr Row rows[] = {
    {"append", event_string, "append"},
    {"bitfield", event_string, "setbit"},
    {"bitop", event_string, "set"},
    {"blmove", event_list, "", ""},
    {"brpoplpush", event_list, "rpop", "lpush"},
    {"copy", event_generic, "", "copy_to"},
    {"decr", event_string, "decrby"},
    {"geoadd", event_sorted_set, "zadd"},
    {"georadius", event_sorted_set, "", "georadiusstore"},
    {"georadiusbymember", event_sorted_set, "", "georadiusstore"},
    {"getset", event_string, "set"},
    {"hmset", event_hash, "hset"},
    {"hsetnx", event_hash, "hset"},
    {"incr", event_string, "incrby"},
    {"lpushx", event_list, "lpush"},
    {"mset", event_string, "set"},
    {"msetnx", event_string, "set"},
    {"pfmerge", event_string, "pfadd"},
    {"psetex", event_string, "set"},
    {"rename", event_generic, "rename_from", "rename_to"},
    {"renamenx", event_generic, "rename_from", "rename_to"},
    {"rpoplpush", event_list, "rpop", "lpush"},
    {"rpushx", event_list, "rpush"},
    {"setex", event_string, "set"},
    {"setnx", event_string, "set"},
    {"smove", event_set, "srem", "sadd"},
    {"sort", event_list, "sortstore"},
    {"xack", event_stream, ""},
    {"xautoclaim", event_stream, ""},
    {"xclaim", event_stream, ""},
    {"xgroup|create", event_stream, "xgroup-create"},
    {"xgroup|createconsumer", event_stream, "xgroup-createconsumer"},
    {"xgroup|delconsumer", event_stream, "xgroup-delconsumer"},
    {"xgroup|destroy", event_stream, "xgroup-destroy"},
    {"xgroup|setid", event_stream, "xgroup-setid"},
    {"xreadgroup", event_stream, ""},
    {"zincrby", event_sorted_set, "zincr"},
};

/// By the first letter of a command's name, where no row says more.
EventKind kind_of(std::string_view command) {
  if (command.starts_with("expire") || command.starts_with("pexpire") || command == "persist" ||
      command == "restore")
    return event_generic;
  if (command.starts_with("pf")) return event_string;
  switch (command.front()) {
    case 'h': return event_hash;
    case 'z':
    case 'g': return event_sorted_set;
    case 'x': return event_stream;
    case 's': return command.starts_with("set") ? event_string : event_set;
    case 'l':
    case 'r': return event_list;
    default: return event_string;
  }
}

bool has_word(Words words, std::size_t from, std::string_view wanted) {
  return std::ranges::any_of(words.subspan(std::min(from, words.size())),
                             [&](std::string_view word) { return resp::is_word(word, wanted); });
}

constexpr bool is_end(std::string_view word) { return resp::is_word(word, "left"); }

}  // namespace

std::optional<std::uint32_t> read_event_kinds(std::string_view letters) {
  std::uint32_t kinds = 0;
  for (const char letter : letters) {
    const auto found = std::ranges::find(letters_of_kinds, letter, &Letter::letter);
    if (found == std::end(letters_of_kinds)) return std::nullopt;
    kinds |= found->kinds;
  }
  return kinds;
}

std::string event_letters(std::uint32_t kinds) {
  std::string text;
  const bool all = (kinds & all_kinds) == all_kinds;
  for (const auto& [letter, its] : letters_of_kinds) {
    const bool is_of_all = (its & all_kinds) != 0;
    if (its == all_kinds ? all : (kinds & its) != 0 && !(all && is_of_all)) text += letter;
  }
  return text;
}

void tell_event(Context& context, int database, EventKind kind, std::string_view event,
                std::string_view key) {
  const auto wanted = context.engine().notified_events;
  if ((wanted & kind) == 0) return;
  if ((wanted & event_by_key) != 0)
    context.publish(fmt::format("__keyspace@{}__:{}", database, key), event);
  if ((wanted & event_by_name) != 0)
    context.publish(fmt::format("__keyevent@{}__:{}", database, event), key);
}

EventWatch::EventWatch(Context& context, const resp::CommandSpec& spec, Words words)
    : context_(context), database_(context.session().database) {
  std::vector<std::size_t> positions;
  if (!resp::keys_of(spec, words, positions)) return;
  for (const auto at : positions) keys_.push_back({words[at], is_there(words[at])});
}

bool EventWatch::is_there(std::string_view key) const {
  constexpr auto before_all_time = std::numeric_limits<std::int64_t>::min();
  return context_.engine().keyspace(database_).find_entry(key, before_all_time) != nullptr;
}

void EventWatch::tell(const resp::CommandSpec& spec, Words words) {
  const auto say = [&](EventKind kind, std::string_view event, std::string_view key) {
    if (!event.empty()) tell_event(context_, database_, kind, event, key);
  };
  const auto name = spec.name;
  for (const auto& key : keys_)
    if (!key.was_there && is_there(key.name)) say(event_new, "new", key.name);
  const auto row = std::ranges::find(rows, name, &Row::command);
  const bool is_known = row != std::end(rows);
  const auto kind = is_known ? row->kind : kind_of(name);
  const bool deletes = name == "del" || name == "unlink" || name == "getdel";
  const bool moves = name == "rename" || name == "renamenx" || name == "move";
  if (!deletes && !keys_.empty()) {
    const auto& first = keys_.front().name;
    const bool stays = is_there(first);
    if (name == "mset" || name == "msetnx") {
      for (const auto& key : keys_) say(kind, "set", key.name);
    } else if (name == "lmove" || name == "blmove") {
      say(kind, is_end(words[3]) ? "lpop" : "rpop", first);
      say(kind, is_end(words[4]) ? "lpush" : "rpush", keys_[1].name);
    } else if (name == "blpop" || name == "brpop" || name == "bzpopmin" || name == "bzpopmax" ||
               name == "lmpop" || name == "zmpop" || name == "blmpop" || name == "bzmpop") {
      say(kind_of(name.substr(name.front() == 'b' ? 1 : 0)), name.substr(1), first);
    } else if (name == "getex") {
      say(event_generic, has_word(words, 2, "persist") ? "persist" : stays ? "expire" : "", first);
    } else if (name.find("expire") != name.npos) {
      say(event_generic, stays ? "expire" : "", first);
    } else if (name == "move") {
      say(event_generic, "move_from", first);
    } else if (name == "zadd" &&
               has_word(words.first(std::min<std::size_t>(words.size(), 7)), 2, "incr")) {
      say(kind, "zincr", first);
    } else if (is_known) {
      say(kind, row->first, first);
      if (keys_.size() > 1 && is_there(keys_[1].name)) say(kind, row->second, keys_[1].name);
    } else if (name.ends_with("store")) {
      if (stays) say(kind, name, first);
    } else {
      say(kind, name, first);
    }
    const bool has_expiry =
        name == "setex" || name == "psetex" ||
        (name == "set" && (has_word(words, 3, "ex") || has_word(words, 3, "px") ||
                           has_word(words, 3, "exat") || has_word(words, 3, "pxat")));
    if (has_expiry) say(event_generic, "expire", first);
  }
  for (const auto& key : keys_)
    if (key.was_there && !moves && !is_there(key.name)) say(event_generic, "del", key.name);
}

}  // namespace sluice::engine
