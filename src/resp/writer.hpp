/// RESP on its way out: commands of a client, replies of a server.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "sluice/value.hpp"

namespace sluice::resp {

using Words = std::span<const std::string_view>;

/// How many bytes append_command() adds.
std::size_t command_size(Words words) noexcept;
/// A command as an array of bulk strings. The buffer grows once at most.
void append_command(std::string& out, Words words);
inline void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  append_command(out, Words{words.begin(), words.size()});
}
/// The same as bytes of its own: command_bytes({"PING"}).
inline std::string command_bytes(std::initializer_list<std::string_view> words) {
  std::string bytes;
  append_command(bytes, words);
  return bytes;
}

/// The same piecewise, for a command whose words lie in several places: the header, then `count`
/// times append_bulk().
void append_command_header(std::string& out, std::size_t count);
void append_bulk(std::string& out, std::string_view text);

/// Writes replies in RESP2 or RESP3. What RESP2 has no form for becomes what Redis sends to its
/// RESP2 clients. Line ends inside simple strings and errors become spaces, so that no text breaks
/// the protocol.
class ReplyWriter {
 public:
  explicit ReplyWriter(std::string& out, int protocol = 2) : out_(out), protocol_(protocol) {}

  int protocol() const noexcept { return protocol_; }

  void null();
  void null_array();
  void integer(std::int64_t value);
  void number(double value);
  void big_number(std::string_view digits);
  void boolean(bool value);
  void simple(std::string_view text);
  void bulk(std::string_view text);
  void verbatim(std::string_view text);
  void error(std::string_view text);  ///< code first, without '-'
  void array(std::size_t size);
  void set(std::size_t size);
  void map(std::size_t pairs);
  void push(std::size_t size);
  /// Texts as bulk strings, whole numbers as integers.
  template <class... Items>
  void items(const Items&... all) {
    (item(all), ...);
  }

  void value(const Value& value);

 private:
  void item(std::string_view text) { bulk(text); }
  void item(std::integral auto number) { integer(static_cast<std::int64_t>(number)); }
  bool resp3() const noexcept { return protocol_ >= 3; }
  void head(const Value& value);
  void line(char type, std::string_view text);
  void header(char type, std::uint64_t size);

  std::string& out_;
  int protocol_;
};

}  // namespace sluice::resp
