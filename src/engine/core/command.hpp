/// What the command families have in common: finding a key of one type, reading arguments,
/// refusing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/engine.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/core/object.hpp"
#include "engine/core/reply.hpp"
#include "engine/types/number_text.hpp"

namespace sluice::engine {

inline constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";
inline constexpr std::string_view not_a_float = "ERR value is not a valid float";
inline constexpr std::string_view out_of_range = "ERR value is out of range";
inline constexpr std::string_view not_positive = "ERR value is out of range, must be positive";
inline constexpr std::string_view syntax_error = "ERR syntax error";
inline constexpr std::string_view no_such_key = "ERR no such key";
inline constexpr std::string_view string_too_long =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr std::size_t longest_string = 512UL << 20;

/// Refuses: `return fail(reply, syntax_error);`
inline bool fail(Reply& reply, std::string_view error) {
  reply.error(error);
  return false;
}

/// An argument; false: refused.
bool read_integer(std::string_view word, std::int64_t& value, Reply& reply,
                  std::string_view error = not_an_integer);
/// Where an index, a rank or a count cannot be larger than `most`.
bool read_integer_between(std::string_view word, std::int64_t least, std::int64_t most,
                          std::int64_t& value, Reply& reply, std::string_view error);
bool read_double(std::string_view word, double& value, Reply& reply,
                 std::string_view error = not_a_float);
/// Seconds of BLPOP and its kin; 0: for ever.
bool read_timeout(std::string_view word, std::int64_t& timeout_ms, Reply& reply);
/// The COUNT of *RANDMEMBER and SPOP: within half the range, so that it can be negated and doubled.
bool read_count(std::string_view word, std::int64_t& count, Reply& reply);

/// How many SPOP, LPOP, ZPOPMIN and their kin are to take: the word behind the key, or one where
/// there is none.
bool read_pop_count(Words words, std::size_t& count, Reply& reply);

template <class T>
T* as(Object& object) noexcept {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::get_if<std::string>(&object);
  } else {
    auto* held = std::get_if<std::unique_ptr<T>>(&object);
    return held ? held->get() : nullptr;
  }
}

inline Object* find(Context& context, std::string_view key) {
  return context.keys().find(key, context.now_ms());
}

/// The value of that type at a key, null where there is none. False: another type is there, and was
/// refused.
template <class T>
bool find_as(Context& context, std::string_view key, T*& found, Reply& reply) {
  Object* object = find(context, key);
  found = object ? as<T>(*object) : nullptr;
  return !object || found || fail(reply, wrong_type);
}

template <class T>
T& make(Context& context, std::string_view key) {
  return *as<T>(context.keys().put(key, std::make_unique<T>()));
}

/// What is left of a key without elements: nothing.
template <class T>
void drop_if_empty(Context& context, std::string_view key, const T& value) {
  if (value.size() == 0) context.keys().erase(key);
}

/// The end of every ...STORE: the result takes the place of what stood at `key`; an empty one
/// deletes it. Replies its size. `wakes`: somebody may be blocked on a key of this kind.
template <class T>
void store_result(Context& context, std::string_view key, std::unique_ptr<T> result, bool wakes,
                  Reply& reply) {
  const auto size = result->size();
  if (size > 0) {
    context.keys().put(key, std::move(result));
    if (wakes) context.signal(key);
    context.changed();
  } else if (find(context, key)) {
    context.keys().erase(key);
    context.changed();
    context.log_instead({"DEL", key});
  }
  reply.integer(static_cast<std::int64_t>(size));
}

/// The interval [first, last) of `size` elements that Redis's inclusive `start` and `end` name,
/// negative from the end.
struct Interval {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t size() const noexcept { return last - first; }
};
Interval interval_of(std::int64_t start, std::int64_t end, std::size_t size) noexcept;

/// A caller's word as an error may show it: at most 128 bytes, no line break, nothing behind a NUL.
std::string shown(std::string_view word, std::size_t most = 128);

/// Replies "wrong number of arguments for 'name' command".
void refuse_arity(Reply& reply, std::string_view name);

}  // namespace sluice::engine
