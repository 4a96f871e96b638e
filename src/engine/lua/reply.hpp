/// Replies and Lua values, both ways: what redis.call(...) gives a script, and what a script
/// returns.
#pragma once

#include <array>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/reply.hpp"

namespace sluice::engine {

/// Leaves one value on the stack. In RESP2 null is false, a status {ok=}, an error {err=}; in RESP3
/// null is nil and doubles, maps, sets and verbatim texts are tables with a field of that name.
class LuaReply final : public Reply {
 public:
  LuaReply(lua_State* lua, int protocol, Context& context) noexcept
      : lua_(lua), resp3_(protocol == 3), context_(context) {}

  /// The whole reply is an error.
  bool is_error() const noexcept { return error_; }
  /// Something was replied.
  bool complete() const noexcept { return complete_; }

  void null() override;
  void null_array() override { null(); }
  void integer(std::int64_t value) override;
  void number(double value) override;
  void boolean(bool value) override;
  void simple(std::string_view text) override;
  void bulk(std::string_view text) override;
  void verbatim(std::string_view text) override;
  void error(std::string_view text) override;
  void array(std::size_t size) override { open(Kind::array, size); }
  void set(std::size_t size) override { open(resp3_ ? Kind::set : Kind::array, size); }
  void restart() override {}  ///< whoever ends a command clears the stack
  void map(std::size_t pairs) override { open(resp3_ ? Kind::map : Kind::array, 2 * pairs); }

 private:
  enum class Kind : std::uint8_t { array, set, map };
  struct Open {
    Kind kind;
    std::size_t left;  ///< values to come; a map's keys and values are counted each
    int index;         ///< of the last element of an array
  };

  void open(Kind kind, std::size_t size);
  void done();              ///< the value on top is whole: it goes into the aggregate around it
  bool add_to(Open& open);  ///< true: it was the last one
  void close(Kind kind);

  static constexpr std::size_t elements_a_charge = 64;

  lua_State* lua_;
  bool resp3_;
  Context& context_;
  std::size_t elements_ = 0;
  bool error_ = false;
  bool complete_ = false;
  std::size_t depth_ = 0;
  std::array<Open, 16> open_;  // XINFO STREAM FULL, our deepest, needs six
};

/// Pushes {err = text}, as a command's error looks to a script.
void push_error(lua_State* lua, std::string_view text);
/// Raises {err = text}; gives nothing back.
[[noreturn]] void raise_error(lua_State* lua, std::string_view text);

/// Replies the value at the top of the stack and pops it, as Redis converts: a number becomes an
/// integer (truncated), a table an array up to its first nil, unless it has a field err, ok,
/// double, map, set, big_number or verbatim_string; true is 1 and false null, unless the script has
/// asked for RESP3.
/// False: it is larger than `most` bytes, about, and `reply` has only its beginning.
bool reply_result(lua_State* lua, Reply& reply, int protocol, std::size_t most);

/// A status or error is one line, up to a NUL: line ends become blanks, at the end of an error
/// nothing.
std::string one_line(std::string_view text, bool is_error = true);

}  // namespace sluice::engine
