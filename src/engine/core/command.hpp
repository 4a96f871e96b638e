/// What the families of commands share: finding the value at a key, reading arguments, refusing.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/engine.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/core/reply.hpp"
#include "engine/types/text.hpp"

namespace sluice::engine {

inline constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";
inline constexpr std::string_view not_a_float = "ERR value is not a valid float";
inline constexpr std::string_view out_of_range = "ERR value is out of range";
inline constexpr std::string_view not_positive = "ERR value is out of range, must be positive";
inline constexpr std::string_view syntax_error = "ERR syntax error";
inline constexpr std::string_view no_such_key = "ERR no such key";
inline constexpr std::string_view increment_overflows = "ERR increment or decrement would overflow";
inline constexpr std::string_view increment_not_finite =
    "ERR increment would produce NaN or Infinity";
inline constexpr std::string_view string_too_long =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
inline constexpr std::size_t longest_string = 512UL << 20;
inline constexpr auto largest_integer = std::numeric_limits<std::int64_t>::max();

/// Refuses: `return fail(reply, syntax_error);`
inline bool fail(Reply& reply, std::string_view error) {
  reply.error(error);
  return false;
}

// Each reads one argument. False: it was refused.

bool read_integer(std::string_view word, std::int64_t& value, Reply& reply,
                  std::string_view error = not_an_integer);
bool read_integer_between(std::string_view word, std::int64_t least, std::int64_t most,
                          std::int64_t& value, Reply& reply, std::string_view error);
/// Two neighbouring words, as "start end" or "offset count".
bool read_integers(Words words, std::int64_t& first, std::int64_t& second, Reply& reply);
bool read_double(std::string_view word, double& value, Reply& reply,
                 std::string_view error = not_a_float);
/// The seconds of BLPOP and the other blocking commands; 0: for ever.
bool read_timeout(std::string_view word, std::int64_t& timeout_ms, Reply& reply);
/// The COUNT of *RANDMEMBER: within half the range, so that it can be negated and doubled.
bool read_count(std::string_view word, std::int64_t& count, Reply& reply);
/// The optional count behind the key of SPOP, LPOP, ZPOPMIN ...; 1 where there is none.
bool read_pop_count(Words words, std::size_t& count, Reply& reply);
/// The number of a database.
bool read_database(std::string_view word, int& database, Reply& reply,
                   std::string_view error = not_an_integer);

/// How a command names a time of expiry.
struct TimeUnit {
  bool seconds;
  bool relative;  ///< to now
};
/// EX, PX, EXAT or PXAT in any case. False: none of them, and nothing was replied.
bool read_time_unit(std::string_view word, TimeUnit& unit) noexcept;
/// Gives the absolute time in milliseconds, or refuses it as "invalid expire time in 'command'
/// command". `positive`: 0 and less are refused too (SET and GETEX; to EXPIRE they mean deletion).
bool read_expiry(const Context& context, std::string_view word, TimeUnit unit, bool positive,
                 std::string_view command, std::int64_t& at_ms, Reply& reply);

template <class T>
struct Choice {
  std::string_view word;  ///< lower case
  T value;
};
/// One word out of a few. False: it is none of them, and nothing was replied.
template <class T, std::size_t size>
bool choose(std::string_view word, const Choice<T> (&choices)[size], T& chosen) {
  for (const auto& choice : choices)
    if (is_word(word, choice.word)) return chosen = choice.value, true;
  return false;
}

inline Object* find(Context& context, std::string_view key) {
  return context.keys().find(key, context.now_ms());
}

/// The value of type T at a key, null where there is no such key. False: a value of another type is
/// there, which was refused.
template <class T>
bool find_as(Context& context, std::string_view key, T*& found, Reply& reply) {
  Object* object = find(context, key);
  found = object ? as<T>(*object) : nullptr;
  return !object || found || fail(reply, wrong_type);
}

/// Makes a handler of `body`, which gets the value at words[1]; null: there is no such key.
template <class T, void (*body)(Context&, Words, T*, Reply&)>
void on(Context& context, Words words, Reply& reply) {
  T* value = nullptr;
  if (find_as(context, words[1], value, reply)) body(context, words, value, reply);
}

/// A new, empty value at a key.
template <class T>
T& make(Context& context, std::string_view key) {
  if constexpr (std::is_same_v<T, std::string>)
    return *as<T>(context.keys().put(key, std::string{}));
  else
    return *as<T>(context.keys().put(key, std::make_unique<T>()));
}
template <class T>
T& value_or_new(Context& context, std::string_view key, T* value) {
  return value ? *value : make<T>(context, key);
}

/// Gives a key its time of expiry. False: that time is over; the key was deleted, and the log says
/// so.
bool set_expiry(Context& context, std::string_view key, Entry& entry, std::int64_t at_ms);

/// Deletes a key whose value has no elements any more.
template <class T>
void drop_if_empty(Context& context, std::string_view key, const T& value) {
  if (value.size() == 0) context.keys().erase(key);
}

/// The end of every ...STORE command: the result replaces what is at `key`; an empty one deletes
/// it. Replies its size. `wakes`: a caller may be blocked on a key of this type.
template <class T>
void store_result(Context& context, std::string_view key, T result, bool wakes, Reply& reply) {
  const auto size = [&] {
    if constexpr (std::is_same_v<T, std::string>)
      return result.size();
    else
      return result->size();
  }();
  if (size > 0) {
    context.keys().put(key, std::move(result));
    if (wakes) context.signal(key);
    context.changed();
  } else if (find(context, key)) {
    context.keys().erase(key);
    context.changed();
    context.log_instead({"DEL", key});
  }
  reply.count(size);
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
