#include "engine/lua/pattern.hpp"

#include <cctype>
#include <cstring>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {
namespace {

constexpr char escape = '%';

/// What %a, %d and so on stand for; a capital letter for all else. Any other character stands for
/// itself.
bool in_class(unsigned char c, unsigned char name) {
  bool is = false;
  switch (std::tolower(name)) {
    case 'a': is = std::isalpha(c) != 0; break;
    case 'c': is = std::iscntrl(c) != 0; break;
    case 'd': is = std::isdigit(c) != 0; break;
    case 'l': is = std::islower(c) != 0; break;
    case 'p': is = std::ispunct(c) != 0; break;
    case 's': is = std::isspace(c) != 0; break;
    case 'u': is = std::isupper(c) != 0; break;
    case 'w': is = std::isalnum(c) != 0; break;
    case 'x': is = std::isxdigit(c) != 0; break;
    case 'z': is = c == 0; break;
    default: return name == c;
  }
  return std::isupper(name) != 0 ? !is : is;
}

/// The set from '[' at `set` to ']' at `last`.
bool in_set(unsigned char c, const char* set, const char* last) {
  const bool wanted = set[1] != '^';
  if (!wanted) ++set;
  while (++set < last) {
    if (*set == escape) {
      ++set;
      if (in_class(c, static_cast<unsigned char>(*set))) return wanted;
    } else if (set[1] == '-' && set + 2 < last) {
      set += 2;
      if (static_cast<unsigned char>(set[-2]) <= c && c <= static_cast<unsigned char>(*set))
        return wanted;
    } else if (static_cast<unsigned char>(*set) == c) {
      return wanted;
    }
  }
  return !wanted;
}

}  // namespace

void LuaPattern::settle() {
  const auto steps = steps_;
  steps_ = 0;
  spend_steps(lua_, steps / 4);  // a step is cheaper than an instruction
}

const char* LuaPattern::match(const char* at, const char* pattern) {
  if (++depth_ > deepest) luaL_error(lua_, "pattern too complex");
  const char* end = proceed(at, pattern);
  --depth_;
  return end;
}

/// From here on to the end of the pattern; null where it does not fit.
const char* LuaPattern::proceed(const char* at, const char* pattern) {
  for (;;) {
    step();
    switch (*pattern) {
      case '\0': return at;
      case '(':
        return pattern[1] == ')' ? open_capture(at, pattern + 2, position)
                                 : open_capture(at, pattern + 1, unfinished);
      case ')': return close_capture(at, pattern + 1);
      case '$':
        if (pattern[1] == '\0') return at == end_ ? at : nullptr;
        break;
      case escape:
        if (pattern[1] == 'b' || pattern[1] == 'f' ||
            std::isdigit(static_cast<unsigned char>(pattern[1])))
          return escaped(at, pattern);
        break;
      default: break;
    }
    const char* after = single_end(pattern);
    if (*after == '?' || *after == '*' || *after == '+' || *after == '-') return item(at, pattern);
    if (!matches_single(at, pattern, after)) return nullptr;
    ++at;
    pattern = after;
  }
}

/// A single character class with a repetition behind it.
const char* LuaPattern::item(const char* at, const char* pattern) {
  const char* after = single_end(pattern);
  switch (*after) {
    case '?':
      if (matches_single(at, pattern, after))
        if (const char* end = match(at + 1, after + 1)) return end;
      return match(at, after + 1);
    case '*': return most_then(at, pattern, after);
    case '+':
      return matches_single(at, pattern, after) ? most_then(at + 1, pattern, after) : nullptr;
    default: return fewest_then(at, pattern, after);
  }
}

const char* LuaPattern::single_end(const char* pattern) {
  if (*pattern == escape) {
    if (pattern[1] == '\0') luaL_error(lua_, "malformed pattern (ends with '%%')");
    return pattern + 2;
  }
  if (*pattern++ != '[') return pattern;
  const char* const set = pattern;
  if (*pattern == '^') ++pattern;
  do {  // a ']' that comes first belongs to the set
    if (*pattern == '\0') luaL_error(lua_, "malformed pattern (missing ']')");
    if (*pattern++ == escape && *pattern != '\0') ++pattern;
  } while (*pattern != ']');
  step(static_cast<std::size_t>(pattern - set) / 8);
  return pattern + 1;
}

bool LuaPattern::matches_single(const char* at, const char* pattern, const char* single_end) {
  if (at >= end_) return false;
  const auto c = static_cast<unsigned char>(*at);
  switch (*pattern) {
    case '.': return true;
    case escape: return in_class(c, static_cast<unsigned char>(pattern[1]));
    case '[':
      step(static_cast<std::size_t>(single_end - pattern) / 8);
      return in_set(c, pattern, single_end - 1);
    default: return static_cast<unsigned char>(*pattern) == c;
  }
}

const char* LuaPattern::most_then(const char* at, const char* pattern, const char* single_end) {
  std::ptrdiff_t count = 0;
  for (; matches_single(at + count, pattern, single_end); ++count) step();
  for (; count >= 0; --count)
    if (const char* end = match(at + count, single_end + 1)) return end;
  return nullptr;
}

const char* LuaPattern::fewest_then(const char* at, const char* pattern, const char* single_end) {
  for (;; ++at) {
    if (const char* end = match(at, single_end + 1)) return end;
    if (!matches_single(at, pattern, single_end)) return nullptr;
  }
}

const char* LuaPattern::open_capture(const char* at, const char* pattern, std::ptrdiff_t size) {
  if (level_ >= most_captures) luaL_error(lua_, "too many captures");
  captures_[static_cast<std::size_t>(level_++)] = {at, size};
  const char* end = match(at, pattern);
  if (end == nullptr) --level_;
  return end;
}

const char* LuaPattern::close_capture(const char* at, const char* pattern) {
  int open = level_ - 1;
  while (open >= 0 && captures_[static_cast<std::size_t>(open)].size != unfinished) --open;
  if (open < 0) luaL_error(lua_, "invalid pattern capture");
  auto& capture = captures_[static_cast<std::size_t>(open)];
  capture.size = at - capture.begin;
  const char* end = match(at, pattern);
  if (end == nullptr) capture.size = unfinished;
  return end;
}

/// %b, %f and the back references; then the rest.
const char* LuaPattern::escaped(const char* at, const char* pattern) {
  if (pattern[1] == 'f') return frontier(at, pattern + 2);
  const bool pair = pattern[1] == 'b';
  const char* end = pair ? balanced(at, pattern + 2) : same_as_capture(at, pattern[1]);
  return end == nullptr ? nullptr : match(end, pattern + (pair ? 4 : 2));
}

const char* LuaPattern::balanced(const char* at, const char* pattern) {
  if (pattern[0] == '\0' || pattern[1] == '\0') luaL_error(lua_, "unbalanced pattern");
  if (*at != pattern[0]) return nullptr;
  int open = 1;
  while (++at < end_) {
    step();
    if (*at == pattern[1]) {
      if (--open == 0) return at + 1;
    } else if (*at == pattern[0]) {
      ++open;
    }
  }
  return nullptr;
}

const char* LuaPattern::frontier(const char* at, const char* pattern) {
  if (*pattern != '[') luaL_error(lua_, "missing '[' after '%%f' in pattern");
  const char* after = single_end(pattern);
  step(static_cast<std::size_t>(after - pattern) / 8);
  const auto before = static_cast<unsigned char>(at == begin_ ? '\0' : at[-1]);
  if (in_set(before, pattern, after - 1) ||
      !in_set(static_cast<unsigned char>(*at), pattern, after - 1))
    return nullptr;
  return match(at, after);
}

const char* LuaPattern::same_as_capture(const char* at, char digit) {
  const int index = digit - '1';
  if (index < 0 || index >= level_ || captures_[static_cast<std::size_t>(index)].size == unfinished)
    luaL_error(lua_, "invalid capture index");
  const auto& capture = captures_[static_cast<std::size_t>(index)];
  const auto size = capture.size < 0 ? std::ptrdiff_t{-1} : capture.size;
  if (size < 0 || end_ - at < size) return nullptr;
  step(static_cast<std::size_t>(size) / 8);
  return std::memcmp(capture.begin, at, static_cast<std::size_t>(size)) == 0 ? at + size : nullptr;
}

void LuaPattern::push_capture(int index, const char* from, const char* to) {
  if (index >= level_) {
    if (index != 0) luaL_error(lua_, "invalid capture index");
    lua_pushlstring(lua_, from, static_cast<std::size_t>(to - from));
    return;
  }
  const auto& capture = captures_[static_cast<std::size_t>(index)];
  if (capture.size == unfinished) luaL_error(lua_, "unfinished capture");
  if (capture.size == position) return lua_pushinteger(lua_, capture.begin - begin_ + 1);
  lua_pushlstring(lua_, capture.begin, static_cast<std::size_t>(capture.size));
}

int LuaPattern::push_captures(const char* from, const char* to, bool whole_if_none) {
  const int count = level_ == 0 && whole_if_none ? 1 : level_;
  luaL_checkstack(lua_, count, "too many captures");
  for (int i = 0; i < count; ++i) push_capture(i, from, to);
  return count;
}

}  // namespace sluice::engine
