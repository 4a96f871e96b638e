/// Lua's patterns, with a bound on time and depth: the library's own matcher can run for years on a
/// short pattern, where no hook reaches it, or fill the C stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

namespace sluice::engine {

class LuaPattern {
 public:
  /// Both texts have to lie in Lua strings, which end with a zero byte, for as long as the pattern
  /// is used.
  LuaPattern(lua_State* lua, std::string_view text, std::string_view pattern)
      : lua_(lua), begin_(text.data()), end_(text.data() + text.size()), pattern_(pattern.data()) {}
  ~LuaPattern() = default;
  LuaPattern(const LuaPattern&) = delete;
  LuaPattern& operator=(const LuaPattern&) = delete;

  /// The end of the match that begins at `at`; null: there is none. Raises an error for a malformed
  /// pattern.
  const char* match(const char* at, const char* pattern);
  const char* match(const char* at) { return match(at, pattern_); }

  const char* begin() const noexcept { return begin_; }
  const char* end() const noexcept { return end_; }

  /// Pushes all captures, or the whole match where there are none; how many.
  int push_captures(const char* from, const char* to, bool whole_if_none = true);
  /// Pushes one; the whole match as the first where there are none.
  void push_capture(int index, const char* from, const char* to);
  void start() noexcept { level_ = 0; }  ///< before a match at another place

  /// Charges the script for the steps made so far.
  void settle();

 private:
  static constexpr int most_captures = 32;
  static constexpr int deepest = 1000;
  static constexpr std::ptrdiff_t unfinished = -1;
  static constexpr std::ptrdiff_t position = -2;
  struct Capture {
    const char* begin;
    std::ptrdiff_t size;
  };

  const char* proceed(const char* at, const char* pattern);
  const char* single_end(const char* pattern);
  bool matches_single(const char* at, const char* pattern, const char* single_end);
  const char* item(const char* at, const char* pattern);
  const char* most_then(const char* at, const char* pattern, const char* single_end);
  const char* fewest_then(const char* at, const char* pattern, const char* single_end);
  const char* open_capture(const char* at, const char* pattern, std::ptrdiff_t size);
  const char* close_capture(const char* at, const char* pattern);
  const char* escaped(const char* at, const char* pattern);
  const char* balanced(const char* at, const char* pattern);
  const char* frontier(const char* at, const char* pattern);
  const char* same_as_capture(const char* at, char digit);
  void step(std::size_t steps = 1) {
    steps_ += steps;
    if (steps_ >= 10'000) settle();
  }

  lua_State* lua_;
  const char* begin_;
  const char* end_;
  const char* pattern_;
  int depth_ = 0;
  std::uint64_t steps_ = 0;
  int level_ = 0;
  std::array<Capture, most_captures> captures_;
};

}  // namespace sluice::engine
