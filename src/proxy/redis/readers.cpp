#include "proxy/redis/readers.hpp"

#include <algorithm>
#include <cstring>

#include "proxy/redis/redis_protocol.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

using State = Element::State;
constexpr std::size_t crlf = 2;
constexpr std::size_t longest_count = 19;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

Element cut(char type, std::size_t missing = 1) noexcept {
  return {.state = State::cut, .type = type, .missing = missing};
}

constexpr Element bad{};

/// "\r\n" at `at`; cut when it is not there yet.
State line_ends(std::string_view bytes, std::size_t at) noexcept {
  if (at < bytes.size() && bytes[at] != '\r') return State::bad;
  if (at + 1 < bytes.size() && bytes[at + 1] != '\n') return State::bad;
  return at + 1 < bytes.size() ? State::whole : State::cut;
}

/// "$123\r\n": the number and the size of the line.
Element count_line(std::string_view bytes, bool may_be_null) noexcept {
  const bool negative = bytes.size() > 1 && bytes[1] == '-';
  const std::size_t first = negative ? 2 : 1;
  auto at = first;
  std::int64_t number = 0;
  for (; at < bytes.size() && is_digit(bytes[at]); ++at) {
    if (at - first == longest_count - 1) return bad;
    number = number * 10 + (bytes[at] - '0');
  }
  if (at == bytes.size()) return cut(bytes[0]);
  if (at == first || (negative && (number != 1 || !may_be_null))) return bad;
  const auto end = line_ends(bytes, at);
  if (end != State::whole) return end == State::cut ? cut(bytes[0]) : bad;
  return {.state = State::whole,
          .type = bytes[0],
          .null = negative,
          .number = negative ? 0 : number,
          .size = at + crlf};
}

Element text(std::string_view bytes) noexcept {
  constexpr std::int64_t longest = std::int64_t{1} << 40;
  auto element = count_line(bytes, bytes[0] == '$');
  if (element.state != State::whole || element.null) return element;
  if (element.number > longest) return bad;
  const auto end = element.size + static_cast<std::size_t>(element.number);
  const auto ends = line_ends(bytes, end);
  if (ends == State::bad) return bad;
  if (ends == State::cut) return cut(bytes[0], end + crlf - bytes.size());
  element.size = end + crlf;
  return element;
}

Element aggregate(std::string_view bytes, std::size_t per_count) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  auto element = count_line(bytes, bytes[0] == '*');
  if (element.state != State::whole) return element;
  if (element.number > most) return bad;
  element.children = static_cast<std::size_t>(element.number) * per_count;
  return element;
}

bool fits(char type, std::string_view content) noexcept {
  switch (type) {
    case '_': return content.empty();
    case '#': return content == "t" || content == "f";
    case ',':
    case '(': return !content.empty();
    default: return content.find('\r') == std::string_view::npos;
  }
}

/// A sign and digits, as servers write integers; false for anything else.
bool parse_integer(std::string_view content, std::int64_t& number) noexcept {
  const bool negative = content.starts_with('-');
  const auto digits = content.substr(negative || content.starts_with('+') ? 1 : 0);
  if (digits.empty() || digits.size() > longest_count || !std::ranges::all_of(digits, is_digit))
    return false;
  std::uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  number = static_cast<std::int64_t>(negative ? ~value + 1 : value);
  return true;
}

Element line(std::string_view bytes, std::size_t& scanned) noexcept {
  const auto from = std::max<std::size_t>(scanned, 1);
  const auto* const found =
      from < bytes.size()
          ? static_cast<const char*>(std::memchr(bytes.data() + from, '\n', bytes.size() - from))
          : nullptr;
  const auto end = found != nullptr ? static_cast<std::size_t>(found - bytes.data()) : bytes.size();
  scanned = end;
  if (found == nullptr) return cut(bytes[0]);
  if (end < crlf || bytes[end - 1] != '\r') return bad;
  const auto content = bytes.substr(1, end - crlf);
  Element element{
      .state = State::whole, .type = bytes[0], .null = bytes[0] == '_', .size = end + 1};
  if (bytes[0] == ':' ? !parse_integer(content, element.number) : !fits(bytes[0], content))
    return bad;
  return element;
}

}  // namespace

Element element_at(std::string_view bytes, std::size_t& scanned) noexcept {
  if (bytes.empty()) return cut(0);
  switch (bytes[0]) {
    case '$':
    case '=':
    case '!': return text(bytes);
    case '*':
    case '~':
    case '>': return aggregate(bytes, 1);
    case '%':
    case '|': return aggregate(bytes, 2);
    case '+':
    case '-':
    case ':':
    case ',':
    case '(':
    case '#':
    case '_': return line(bytes, scanned);
    default: return bad;
  }
}

std::string_view string_at(std::string_view bytes) noexcept {
  const auto element = element_at(bytes);
  if (element.type != '$' || element.null) return {};
  const auto length = static_cast<std::size_t>(element.number);
  return bytes.substr(element.size - length - crlf, length);
}

std::size_t reply_size(std::string_view bytes) noexcept {
  std::size_t at = 0;
  for (std::size_t left = 1; left > 0;) {
    const auto element = element_at(bytes.substr(at));
    if (element.state != State::whole) return bytes.size();
    at += element.size;
    left += element.children;
    if (element.type != '|') --left;
  }
  return at;
}

std::string_view without_attributes(std::string_view reply) noexcept {
  while (reply.starts_with('|')) {
    const auto header = element_at(reply);
    if (header.state != State::whole) break;
    reply.remove_prefix(header.size);
    for (auto left = header.children; left > 0; --left) reply.remove_prefix(reply_size(reply));
  }
  return reply;
}

std::string_view RedisRequestReader::wire(std::string_view buffer) {
  if (buffer.front() == '*') return buffer.substr(0, size());
  wire_.clear();
  resp::append_command(wire_, words());
  return wire_;
}

RequestReader::State RedisRequestReader::read(std::string_view buffer) {
  if (strict_ && !buffer.empty() && buffer.front() != '*') return State::bad;
  const auto state = static_cast<State>(parser_.parse(buffer));
  // twemproxy has no empty request either.
  return strict_ && state == State::complete && parser_.words().empty() ? State::bad : state;
}

std::string RedisRequestReader::error_reply() const {
  return strict_ ? std::string{} : proxy::error_reply(parser_.error());
}

void RedisReplyReader::start() {
  state_ = State::incomplete;
  at_ = scanned_ = 0;
  left_ = 1;
  at_front_ = true;
  push_ = false;
}

ReplyReader::State RedisReplyReader::read(std::string_view buffer) {
  constexpr std::size_t most_elements = std::size_t{1} << 32;
  if (state_ == State::complete) start();
  if (state_ == State::bad) return state_;
  while (left_ > 0) {
    const auto element = buffer.size() > at_ ? element_at(buffer.substr(at_), scanned_)
                                             : Element{.state = Element::State::cut};
    if (element.state == Element::State::bad) return state_ = State::bad;
    if (element.state == Element::State::cut) {
      missing_ = element.missing;
      too_long_ = buffer.size() + missing_ > size_limit_;
      return state_ = too_long_ ? State::bad : State::incomplete;
    }
    if (at_front_ && left_ == 1 && element.type != '|') {
      at_front_ = false;
      push_ = element.type == '>';
    }
    at_ += element.size;
    scanned_ = 0;
    left_ += element.children;
    if (element.type != '|') --left_;
    too_long_ = at_ > size_limit_;
    if (too_long_ || left_ > most_elements) return state_ = State::bad;
  }
  return state_ = State::complete;
}

}  // namespace sluice::proxy
