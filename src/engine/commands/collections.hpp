/// What hashes, lists, sets, sorted sets and streams have in common: their size, removing elements,
/// scanning, picking by chance, popping from the first key that has something.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/command.hpp"

namespace sluice::engine {

/// STRLEN, LLEN, HLEN, SCARD, ZCARD, XLEN.
template <class T>
void reply_size(Context&, Words, T* value, Reply& reply) {
  reply.count(value ? value->size() : 0);
}

/// HDEL, SREM, ZREM.
template <class T>
void remove_elements(Context& context, Words words, T* value, Reply& reply) {
  std::size_t removed = 0;
  if (value) {
    for (const auto& element : words.subspan(2))
      removed += value->erase(element, context.undo()) ? 1U : 0U;
    drop_if_empty(context, words[1], *value);
  }
  context.changed(removed);
  reply.count(removed);
}

// --- scanning ---

struct ScanOptions {
  std::uint64_t cursor = 0;
  std::size_t count = 10;
  std::string_view pattern;  ///< empty: everything
  std::string_view type;     ///< SCAN alone; empty: every type

  bool matches(std::string_view text) const noexcept {
    return pattern.empty() || glob_matches(pattern, text);
  }
};

std::uint64_t read_cursor(std::string_view word);
/// Reads the cursor at words[place] and the options behind it.
ScanOptions read_scan(Words words, std::size_t place, bool with_type);
void reply_scan(Reply& reply, std::uint64_t cursor, const std::vector<std::string>& found);

/// Goes on until `count` elements were visited, or many empty buckets.
template <class Container, class Visit>
std::uint64_t scan_some(const Container& container, const ScanOptions& options, Visit&& visit) {
  auto cursor = options.cursor;
  std::size_t visited = 0;
  auto steps = options.count < SIZE_MAX / 10 ? options.count * 10 : SIZE_MAX;
  do {
    cursor = container.scan(cursor, [&](const auto& element) { ++visited, visit(element); });
  } while (cursor != 0 && visited < options.count && --steps > 0);
  return cursor;
}

/// HSCAN, SSCAN, ZSCAN.
template <class T>
void scan_elements(Context& context, Words words, Reply& reply) {
  read_cursor(words[2]);
  const auto* value = find_as<T>(context, words[1]);
  std::vector<std::string> found;
  if (!value) return reply_scan(reply, 0, found);
  const auto options = read_scan(words, 2, false);
  const auto cursor = scan_some(*value, options, [&](const auto& element) {
    context.spend(1);
    if constexpr (std::is_same_v<T, Hash>) {
      if (options.matches(element.name)) found.insert(found.end(), {element.name, element.value});
    } else if constexpr (std::is_same_v<T, SortedSet>) {
      if (!options.matches(element.member)) return;
      found.emplace_back(element.member);
      found.emplace_back(DoubleText{element.score}.view());
    } else {
      if (options.matches(element)) found.emplace_back(element);
    }
  });
  reply_scan(reply, cursor, found);
}

// --- elements with values ---

/// Replies fields with their values, or members with their scores, if those are wanted. `nested`:
/// each pair is an array of its own.
class PairReply {
 public:
  PairReply(Reply& reply, std::size_t elements, bool with_values, bool nested)
      : reply_(reply), with_values_(with_values), nested_(with_values && nested) {
    reply.array(elements * (with_values && !nested ? 2 : 1));
  }
  void add(const Hash::Field* field) {
    add(field->name);
    if (with_values_) reply_.bulk(field->value);
  }
  void add(const Scored& item) {
    add(item.member);
    if (with_values_) reply_.number(item.score);
  }

 private:
  void add(std::string_view name) {
    if (nested_) reply_.array(2);
    reply_.bulk(name);
  }

  Reply& reply_;
  bool with_values_;
  bool nested_;
};
/// RESP3 nests pairs, RESP2 does not.
inline bool nests_pairs(Context& context) { return context.session().protocol == 3; }

// --- picking by chance ---

inline std::string_view name_of(const Hash::Field& field) { return field.name; }
inline std::string_view name_of(const Scored& item) { return item.member; }

// What is kept of an element until it is replied. A member of a set may be a number, whose text
// does not last.
inline std::string kept(std::string_view member) { return std::string{member}; }
inline const Hash::Field* kept(const Hash::Field& field) { return &field; }
inline Scored kept(const Scored& item) { return item; }

/// A script that asks for more repeats than it has memory for runs out of steps before.
constexpr std::uint64_t repeat_steps = 200;

/// `count` different elements, or all; a negative count: as many, with repeats.
/// REQUIRES: `value` is not empty.
template <class T>
auto pick(Context& context, const T& value, std::int64_t count) {
  auto& rng = context.engine().rng;
  std::vector<decltype(kept(value.random(rng)))> all, picked;
  for (; count < 0; ++count) {
    context.spend(repeat_steps);
    picked.push_back(kept(value.random(rng)));
  }
  if (!picked.empty() || count == 0) return picked;
  value.for_each([&](const auto& element) {
    context.spend(1);
    all.push_back(kept(element));
  });
  const auto most = std::min(all.size(), static_cast<std::size_t>(count));
  for (const auto index : distinct_indexes(all.size(), most, rng))
    picked.push_back(std::move(all[index]));
  return picked;
}

/// HRANDFIELD, ZRANDMEMBER: "key [count [WITHVALUES|WITHSCORES]]".
template <class T>
void random_elements(Context& context, Words words, Reply& reply) {
  constexpr std::string_view option = std::is_same_v<T, Hash> ? "withvalues" : "withscores";
  const auto count = words.size() > 2 ? read_count(words[2]) : 0;
  const bool values = words.size() == 4 && is_word(words[3], option);
  if (words.size() > 3 && !values) return reply.error(syntax_error);
  const auto* value = find_as<T>(context, words[1]);
  auto& rng = context.engine().rng;
  if (words.size() == 2) return value ? reply.bulk(name_of(value->random(rng))) : reply.null();
  if (!value) return reply.array(0);
  const auto picked = pick(context, *value, count);
  PairReply pairs{reply, picked.size(), values, nests_pairs(context)};
  for (const auto& element : picked) pairs.add(element);
}

// --- popping ---

/// SPOP, ZPOPMIN, ZPOPMAX: "key [count]".
template <class T>
std::pair<T*, std::size_t> find_to_pop(Context& context, Words words) {
  if (words.size() > 3) refuse(syntax_error);
  const auto count = read_pop_count(words);
  return {find_as<T>(context, words[1]), count};
}

/// "numkeys key [key ...] LEFT|RIGHT|MIN|MAX [COUNT count]"
struct PopKeys {
  Words keys;
  std::string_view end;  ///< the word that says from which end
  std::int64_t count = 1;
};
PopKeys read_pop_keys(Words words, std::size_t place);

/// Nothing was there: blocks, or in a script replies as after the timeout.
void wait_for(Context& context, Words keys, std::int64_t timeout_ms, Reply& reply);

/// Calls `pop(key, value)` for the first of the keys that holds a T. False: none does, and nothing
/// was replied.
template <class T, class Pop>
bool pop_first(Context& context, Words keys, Pop&& pop) {
  for (const auto& key : keys) {
    T* value = find_as<T>(context, key);
    if (!value) continue;
    pop(key, *value);
    return true;
  }
  return false;
}

/// BLPOP, BZPOPMIN ...: "key [key ...] timeout".
template <class T, class Pop>
void pop_or_wait(Context& context, Words words, Reply& reply, Pop&& pop) {
  const auto timeout_ms = read_timeout(words.back());
  const auto keys = words.subspan(1, words.size() - 2);
  if (!pop_first<T>(context, keys, pop)) wait_for(context, keys, timeout_ms, reply);
}

/// Pops up to pop.count elements. False: none of the keys exists, and nothing was replied.
using PopSeveral = bool (*)(Context& context, const PopKeys& pop, Reply& reply);

/// LMPOP, ZMPOP.
template <PopSeveral pop_several>
void pop_at_once(Context& context, Words words, Reply& reply) {
  if (!pop_several(context, read_pop_keys(words, 1), reply)) reply.null_array();
}
/// BLMPOP, BZMPOP.
template <PopSeveral pop_several>
void pop_several_or_wait(Context& context, Words words, Reply& reply) {
  const auto timeout_ms = read_timeout(words[1]);
  const auto pop = read_pop_keys(words, 2);
  if (!pop_several(context, pop, reply)) wait_for(context, pop.keys, timeout_ms, reply);
}

}  // namespace sluice::engine
