/// What redis.call makes of its arguments: words, and the command that the first one names.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/core/engine.hpp"
#include "engine/types/text.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// The arguments as words, without copies: texts are Lua's own, numbers are written beside them.
class CallArguments {
 public:
  explicit CallArguments(int count) : count_(static_cast<std::size_t>(count)) {
    words_ = reinterpret_cast<std::string_view*>(few_words_);
    if (count_ <= few) return;
    more_words_.resize(count_);
    more_digits_.resize(count_);
    words_ = more_words_.data();
    digits_ = more_digits_.data();
  }
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  /// Takes the arguments from the stack, where they have to stay. False: one is neither a text nor
  /// a number.
  bool take(lua_State* lua) {
    for (std::size_t i = 0; i < count_; ++i) {
      const int at = static_cast<int>(i) + 1;
      const int type = lua_type(lua, at);
      if (type == LUA_TSTRING) {
        std::size_t size = 0;
        const char* bytes = lua_tolstring(lua, at, &size);
        std::construct_at(words_ + i, bytes, size);
      } else if (type == LUA_TNUMBER) {
        std::construct_at(words_ + i, write(lua_tonumber(lua, at), digits_[i]));
      } else {
        return false;
      }
    }
    return true;
  }

  Words words() const noexcept { return {words_, count_}; }

 private:
  using Digits = std::array<char, 32>;
  static constexpr std::size_t few = 16;

  /// An integer as one, anything else in its shortest form (Redis 7.2; 7.0 wrote 17 digits).
  static std::string_view write(double number, Digits& digits) noexcept {
    std::to_chars_result end{};
    if (number > -0x1p62 && number < 0x1p62 &&
        static_cast<double>(static_cast<long long>(number)) == number) {
      end = std::to_chars(digits.begin(), digits.end(), static_cast<long long>(number));
      return {digits.data(), static_cast<std::size_t>(end.ptr - digits.data())};
    }
    const DoubleText text{number};
    const auto size = text.view().copy(digits.data(), digits.size());
    return {digits.data(), size};
  }

  std::size_t count_;
  // Bytes, so that it is not filled with empty words first: most calls have three.
  alignas(std::string_view) std::byte few_words_[few * sizeof(std::string_view)];
  std::array<Digits, few> few_digits_;
  std::string_view* words_ = nullptr;
  Digits* digits_ = few_digits_.data();
  std::vector<std::string_view> more_words_;
  std::vector<Digits> more_digits_;
};

/// The commands that scripts have called, by their names as they were written.
///
/// Three letters and the size of a name select its place, which is the same in each run; the bytes
/// decide. It lives in Lua's memory, which destroys nothing.
class CommandCache {
 public:
  /// Null: it is not remembered.
  const Engine::Command* find(std::string_view name) const noexcept {
    const auto at = index_of(name);
    for (const Place* const place : {&places_[at], &places_[at ^ 1]})
      if (std::string_view{place->name.data(), place->size} == name) return place->command;
    return nullptr;
  }
  void remember(std::string_view name, const Engine::Command& command) noexcept {
    if (name.size() > longest) return;
    // Two names that want the same place must not drive each other out at every call.
    const auto at = index_of(name);
    places_[at ^ 1] = places_[at];
    Place& place = places_[at];
    name.copy(place.name.data(), name.size());
    place.size = name.size();
    place.command = &command;
  }

 private:
  static constexpr std::size_t places = 128;
  static constexpr std::size_t longest = 24;

  struct Place {
    std::array<char, longest> name;
    std::size_t size = 0;
    const Engine::Command* command = nullptr;
  };

  static std::size_t index_of(std::string_view name) noexcept {
    if (name.empty()) return 0;
    const auto letter = [&](std::size_t at) { return static_cast<unsigned char>(name[at]); };
    const std::size_t size = name.size();
    return (letter(0) + 5U * (letter(size / 2) + letter(size - 1)) + size) % places;
  }

  std::array<Place, places> places_;
};

}  // namespace sluice::engine
