/// What the families of commands share: finding the value at a key, reading arguments, refusing.
#pragma once

#include <limits>
#include <memory>
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

/// Ends a command with an error as its reply. REQUIRES: nothing replied.
struct Refusal {
  std::string error;
};
[[noreturn]] void refuse(std::string_view error);
std::string wrong_arity(std::string_view name);
[[noreturn]] void refuse_arity(std::string_view name);

// Each reads one argument, or refuses it.

std::int64_t read_integer(std::string_view word, std::string_view error = not_an_integer);
std::int64_t read_integer_between(std::string_view word, std::int64_t least, std::int64_t most,
                                  std::string_view error);
/// Two neighbouring words, as "start end" or "offset count".
std::pair<std::int64_t, std::int64_t> read_integers(Words words);
double read_double(std::string_view word, std::string_view error = not_a_float);
/// The seconds of BLPOP and the other blocking commands, in milliseconds; 0: for ever.
std::int64_t read_timeout(std::string_view word);
/// The COUNT of *RANDMEMBER: within half the range, so that it can be negated and doubled.
std::int64_t read_count(std::string_view word);
/// The optional count behind the key of SPOP, LPOP, ZPOPMIN ...; 1 where there is none.
std::size_t read_pop_count(Words words);
/// The number of a database.
int read_database(std::string_view word, std::string_view error = not_an_integer);

/// How a command names a time of expiry.
struct TimeUnit {
  bool seconds;
  bool relative;  ///< to now
};
/// EX, PX, EXAT or PXAT in any case. False: none of them, and nothing was replied.
bool read_time_unit(std::string_view word, TimeUnit& unit) noexcept;
/// Gives the absolute time in milliseconds, or refuses it as "invalid expire time in 'command'
/// command". `positive`: 0 and less are refused too (SET and GETEX; to EXPIRE they mean deletion).
std::int64_t read_expiry(const Context& context, std::string_view word, TimeUnit unit,
                         bool positive, std::string_view command);

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

/// The value of type T at a key, null where there is no such key. Refuses a value of another type.
template <class T>
T* find_as(Context& context, std::string_view key) {
  Object* object = find(context, key);
  T* found = object ? as<T>(*object) : nullptr;
  if (object && !found) refuse(wrong_type);
  return found;
}

/// Makes a handler of `body`, which gets the value at words[1]; null: there is no such key.
template <class T, void (*body)(Context&, Words, T*, Reply&)>
void on(Context& context, Words words, Reply& reply) {
  body(context, words, find_as<T>(context, words[1]), reply);
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

std::string upper(std::string_view text);
/// A caller's word as an error may show it: at most 128 bytes, no line break, nothing behind a NUL.
std::string shown(std::string_view word, std::size_t most = 128);

}  // namespace sluice::engine
