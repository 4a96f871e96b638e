#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/integer.hpp"
#include "engine/lua/cjson.hpp"
#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"

namespace sluice::engine {
namespace {

enum class Token {
  object_begin,
  object_end,
  array_begin,
  array_end,
  string,
  number,
  boolean,
  null,
  colon,
  comma,
  end,
  error
};

constexpr const char* names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                 "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                 "T_COLON",     "T_COMMA",   "T_END"};

/// Cuts JSON into tokens. The text ends with a zero byte, as every Lua string does.
class Lexer {
 public:
  Lexer(lua_State* lua, std::string_view text, bool invalid_numbers)
      : begin_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        invalid_numbers_(invalid_numbers),
        decoded_(ScriptAllocator<char>{lua}) {}

  Token next() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
    start_ = at_;
    switch (*at_) {
      case '\0': return Token::end;  // a zero byte in the middle ends the text too
      case '{': return one(Token::object_begin);
      case '}': return one(Token::object_end);
      case '[': return one(Token::array_begin);
      case ']': return one(Token::array_end);
      case ':': return one(Token::colon);
      case ',': return one(Token::comma);
      case '"': return string();
      default: return word_or_number();
    }
  }

  /// Where the last token begins, counted from 1.
  int place() const noexcept { return static_cast<int>(start_ - begin_) + 1; }
  double number() const noexcept { return number_; }
  bool boolean() const noexcept { return boolean_; }
  std::string_view text() const noexcept { return text_; }
  const char* error() const noexcept { return error_; }

 private:
  Token one(Token token) {
    ++at_;
    return token;
  }

  Token fail(const char* error, const char* where) {
    error_ = error;
    start_ = where;
    return Token::error;
  }

  bool literal(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0)
      return false;
    at_ += word.size();
    return true;
  }

  Token word_or_number() {
    if (literal("true")) return boolean_ = true, Token::boolean;
    if (literal("false")) return boolean_ = false, Token::boolean;
    if (literal("null")) return Token::null;
    const char c = static_cast<char>(*at_ | 0x20);
    const bool numeric = (*at_ >= '0' && *at_ <= '9') || *at_ == '-' || *at_ == '+';
    if (numeric && !invalid_numbers_ && is_invalid_number()) return fail("invalid number", start_);
    if (!numeric && !(invalid_numbers_ && (c == 'i' || c == 'n')))
      return fail("invalid token", start_);
    char* after = nullptr;
    number_ = std::strtod(at_, &after);
    if (after == at_) return fail(numeric ? "invalid number" : "invalid token", start_);
    at_ = after;
    return Token::number;
  }

  /// What strtod takes and JSON does not: hexadecimal, leading zeros, a plus sign, infinity, NaN.
  bool is_invalid_number() const noexcept {
    const char* p = at_;
    if (*p == '+') return true;
    if (*p == '-') ++p;
    if (*p == '0') return (p[1] | 0x20) == 'x' || (p[1] >= '0' && p[1] <= '9');
    return !(*p >= '1' && *p <= '9');
  }

  Token string() {
    const char* run = ++at_;
    while (*at_ != '"' && *at_ != '\\' && *at_ != '\0') ++at_;
    if (*at_ == '"') {  // nothing to decode
      text_ = {run, static_cast<std::size_t>(at_++ - run)};
      return Token::string;
    }
    decoded_.assign(run, at_);
    while (*at_ != '"' && *at_ != '\0') {
      if (*at_ != '\\') {
        decoded_ += *at_++;
      } else if (const char* error = escape()) {
        return fail(error, at_);
      }
    }
    if (*at_ == '\0') return fail("unexpected end of string", at_);  // at the end, or amid it
    ++at_;
    text_ = decoded_;
    return Token::string;
  }

  /// Decodes the escape at `at_`; gives an error or null.
  const char* escape() {
    static constexpr std::string_view plain = "\"\"\\\\//b\bt\tn\nf\fr\r";
    const char kind = at_ + 1 < end_ ? at_[1] : '\0';
    if (kind == 'u') return unicode();
    for (std::size_t i = 0; i < plain.size(); i += 2) {
      if (plain[i] != kind) continue;
      decoded_ += plain[i + 1];
      at_ += 2;
      return nullptr;
    }
    return "invalid escape code";
  }

  const char* unicode() {
    static constexpr const char* invalid = "invalid unicode escape code";
    std::uint32_t code = 0;
    if (!hex4(at_ + 2, code)) return invalid;
    std::size_t length = 6;
    if ((code & 0xF800) == 0xD800) {  // a surrogate: the high one first, then the low one
      std::uint32_t low = 0;
      const bool paired = (code & 0x400) == 0 && end_ - at_ >= 12 && at_[6] == '\\' &&
                          at_[7] == 'u' && hex4(at_ + 8, low) && (low & 0xFC00) == 0xDC00;
      if (!paired) return invalid;
      code = ((code & 0x3FF) << 10) + (low & 0x3FF) + 0x10000;
      length = 12;
    }
    add_utf8(code);
    at_ += length;
    return nullptr;
  }

  bool hex4(const char* digits, std::uint32_t& code) const noexcept {
    if (end_ - digits < 4) return false;
    const auto read = sluice::parse_integer<std::uint32_t>({digits, 4}, 16);
    code = read.value_or(0);
    return read.has_value();
  }

  void add_utf8(std::uint32_t code) {
    const auto tail = [&](int shift) {
      decoded_ += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
    };
    if (code < 0x80) {
      decoded_ += static_cast<char>(code);
    } else if (code < 0x800) {
      decoded_ += static_cast<char>(0xC0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      decoded_ += static_cast<char>(0xE0 | (code >> 12));
      tail(6), tail(0);
    } else {
      decoded_ += static_cast<char>(0xF0 | (code >> 18));
      tail(12), tail(6), tail(0);
    }
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* start_ = begin_;
  bool invalid_numbers_;
  double number_ = 0;
  bool boolean_ = false;
  std::string_view text_;
  ScriptString decoded_;
  const char* error_ = nullptr;
};

class Decoder {
 public:
  Decoder(lua_State* lua, std::string_view text, const CjsonConfig& config)
      : lua_(lua), config_(config), lexer_(lua, text, config.decode_invalid) {}

  void whole() {
    value(lexer_.next());
    if (const Token after = lexer_.next(); after != Token::end) unexpected("the end", after);
  }

 private:
  void unexpected(const char* wanted, Token found) {
    const char* what =
        found == Token::error ? lexer_.error() : names[static_cast<std::size_t>(found)];
    luaL_error(lua_, "Expected %s but found %s at character %d", wanted, what, lexer_.place());
  }

  /// Pushes the value that begins with `token`.
  void value(Token token) {
    if (++values_ % values_a_charge == 0) spend_steps(lua_, values_a_charge * 4);
    switch (token) {
      case Token::string: push_text(lua_, lexer_.text()); return;
      case Token::number: lua_pushnumber(lua_, lexer_.number()); return;
      case Token::boolean: lua_pushboolean(lua_, lexer_.boolean()); return;
      case Token::null: lua_pushlightuserdata(lua_, nullptr); return;
      case Token::object_begin: return object();
      case Token::array_begin: return array();
      default: unexpected("value", token);
    }
  }

  void descend() {
    if (++depth_ > config_.decode_depth || !lua_checkstack(lua_, 4))
      luaL_error(lua_, "Found too many nested data structures (%d) at character %d", depth_,
                 lexer_.place());
    lua_newtable(lua_);
  }

  /// `end`, or the first token behind a comma.
  Token after_element(Token end, const char* separator, const char* next) {
    Token token = lexer_.next();
    if (token == end) return token;
    if (token != Token::comma) unexpected(separator, token);
    token = lexer_.next();
    if (token == end) unexpected(next, token);
    return token;
  }

  void array() {
    descend();
    Token token = lexer_.next();
    for (int i = 1; token != Token::array_end; ++i) {
      value(token);
      lua_rawseti(lua_, -2, i);
      token = after_element(Token::array_end, "comma or array end", "value");
    }
    --depth_;
  }

  void object() {
    descend();
    Token token = lexer_.next();
    while (token != Token::object_end) {
      if (token != Token::string) unexpected("object key string", token);
      push_text(lua_, lexer_.text());
      if (const Token colon = lexer_.next(); colon != Token::colon) unexpected("colon", colon);
      value(lexer_.next());
      lua_rawset(lua_, -3);
      token = after_element(Token::object_end, "comma or object end", "object key string");
    }
    --depth_;
  }

  lua_State* lua_;
  const CjsonConfig& config_;
  static constexpr std::size_t values_a_charge = 100;

  Lexer lexer_;
  int depth_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

int cjson_decode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  const std::string_view text = checked_text(lua, 1);
  if (text.size() >= 2 && (text[0] == '\0' || text[1] == '\0'))
    luaL_error(lua, "JSON parser does not support UTF-16 or UTF-32");
  Decoder decoder(lua, text, cjson_config(lua));
  decoder.whole();
  return 1;
}

}  // namespace sluice::engine
