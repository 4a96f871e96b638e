#include "resp/request_parser.hpp"

#include <algorithm>
#include <cstring>

#include "base/integer.hpp"

namespace sluice::resp {
namespace {

/// A number as Redis reads it: no plus, no leading zero, no blank.
bool parse_length(std::string_view text, std::int64_t& number) {
  const auto digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits.front() == '0' && text.size() > 1)) return false;
  const auto parsed = parse_integer<std::int64_t>(text);
  number = parsed.value_or(0);
  return parsed.has_value();
}

std::size_t find(std::string_view buffer, char c, std::size_t from) {
  if (from >= buffer.size()) return std::string_view::npos;
  const auto* found =
      static_cast<const char*>(std::memchr(buffer.data() + from, c, buffer.size() - from));
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(found - buffer.data());
}

/// "<mark>digits\r\n" at `at`, which is moved behind it: at most nine digits, no sign, no leading
/// zero. False: anything else, which the general path reads.
bool take_plain_number(const char*& at, const char* end, char mark, std::size_t& number) {
  constexpr std::ptrdiff_t most_digits = 9;
  constexpr std::ptrdiff_t least = 4;  // "$0\r\n"
  if (end - at < least || *at != mark) return false;
  const char* const first = at + 1;
  const char* const last = first + std::min(end - first - 2, most_digits);
  const char* digit = first;
  std::size_t value = 0;
  for (; digit != last && *digit >= '0' && *digit <= '9'; ++digit)
    value = value * 10 + static_cast<std::size_t>(*digit - '0');
  if (digit == first || digit[0] != '\r' || digit[1] != '\n') return false;
  if (*first == '0' && digit != first + 1) return false;
  number = value;
  at = digit + 2;
  return true;
}

constexpr bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr char escaped(char c) noexcept {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
  }
}

/// Takes a typed line apart into words.
class TypedLine {
 public:
  TypedLine(std::string_view line, std::string& text) : rest_(line), text_(text) {}

  bool skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  bool word() {
    while (!rest_.empty() && !is_blank(rest_.front())) {
      const char c = take();
      if (c == '"' || c == '\'') {
        if (!quoted(c)) return false;
        return rest_.empty() || is_blank(rest_.front());
      }
      text_ += c;
    }
    return true;
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool quoted(char quote) {
    while (!rest_.empty()) {
      const char c = take();
      if (c == quote) return true;
      if (c != '\\' || rest_.empty())
        text_ += c;
      else if (quote == '"')
        text_ += escape();
      else
        text_ += rest_.front() == '\'' ? take() : c;
    }
    return false;
  }

  char escape() {
    const char c = take();
    if (c == 'x' && rest_.size() >= 2 && hex_digit(rest_[0]) >= 0 && hex_digit(rest_[1]) >= 0)
      return static_cast<char>(hex_digit(take()) * 16 + hex_digit(take()));
    return escaped(c);
  }

  std::string_view rest_;
  std::string& text_;
};

}  // namespace

bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& words) {
  line = line.substr(0, line.find('\0'));
  text.clear();
  text.reserve(line.size());  // unquoting makes no word longer, so the views stay good
  TypedLine rest{line, text};
  while (rest.skip_blanks()) {
    const auto begin = text.size();
    if (!rest.word()) return false;
    words.emplace_back(text.data() + begin, text.size() - begin);
  }
  return true;
}

RequestParser::State RequestParser::parse(std::string_view buffer) {
  if (state_ == State::bad) return state_;
  if (state_ == State::complete) start();
  if (buffer.size() <= at_) return wait_for(1);
  if (step_ == Step::begin) {
    if (buffer.front() == '*') return take_whole(buffer) ? finish() : count(buffer);
    step_ = Step::line;
  }
  return step_ == Step::line ? typed_line(buffer) : words_of_array(buffer);
}

void RequestParser::start() {
  state_ = State::incomplete;
  step_ = Step::begin;
  at_ = scanned_ = 0;
  places_.clear();
  count_ = 0;
}

/// The fast path: a whole array in the usual form. False: it is not, and nothing was done; then the
/// general path, which keeps its place and finds errors, reads from the beginning, once a request.
bool RequestParser::take_whole(std::string_view buffer) {
  constexpr std::size_t least_word = 6;  // "$0\r\n\r\n"
  const char* at = buffer.data();
  const char* const end = at + std::min(buffer.size(), limits_.whole);
  std::size_t count = 0;
  if (!limits_.authenticated || !take_plain_number(at, end, '*', count)) return false;
  if (count > limits_.words || count > static_cast<std::size_t>(end - at) / least_word)
    return false;
  if (words_.size() < count) words_.resize(count);
  for (auto* word = words_.data(); word != words_.data() + count; ++word) {
    std::size_t size = 0;
    if (!take_plain_number(at, end, '$', size) || size > limits_.bulk) return false;
    if (static_cast<std::size_t>(end - at) < size + 2) return false;
    if (at[size] != '\r' || at[size + 1] != '\n') return false;
    *word = {at, size};
    at += size + 2;
  }
  count_ = count;
  at_ = static_cast<std::size_t>(at - buffer.data());
  return true;
}

RequestParser::State RequestParser::typed_line(std::string_view buffer) {
  const auto end = find(buffer, '\n', scanned_);
  scanned_ = buffer.size();
  if (std::min(end, buffer.size()) > limits_.line) return refuse("too big inline request");
  if (end == std::string_view::npos) return wait_for(1);
  auto line = buffer.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  // Redis would look for the line end before the NUL alone, and wait for it.
  if (line.contains('\0')) return refuse("a NUL in inline request");
  words_.clear();
  if (!split_inline(line, text_, words_)) return refuse("unbalanced quotes in request");
  if (words_.size() > limits_.words) return refuse("too many words in inline request");
  count_ = words_.size();
  at_ = end + 1;
  return finish();
}

RequestParser::State RequestParser::count(std::string_view buffer) {
  std::string_view digits;
  if (!take_length(buffer, "too big mbulk count string", digits)) return state_;
  std::int64_t number = 0;
  if (!parse_length(digits, number) ||
      (number > static_cast<std::int64_t>(limits_.words) && !limits_.by_bytes))
    return refuse("invalid multibulk length");
  if (!limits_.authenticated && number > static_cast<std::int64_t>(limits_.unauthenticated_words))
    return refuse("unauthenticated multibulk length");
  at_ = scanned_;
  if (number <= 0) return finish();
  words_left_ = static_cast<std::size_t>(number);
  step_ = Step::bulk_length;
  return words_of_array(buffer);
}

RequestParser::State RequestParser::words_of_array(std::string_view buffer) {
  while (words_left_ > 0) {
    if (step_ == Step::bulk_length && !take_bulk_length(buffer)) return state_;
    if (!take_bulk(buffer)) return state_;
  }
  words_.clear();
  words_.reserve(places_.size());
  for (const auto place : places_) words_.push_back(buffer.substr(place.begin, place.size));
  count_ = words_.size();
  return finish();
}

/// The line "Xdigits\r\n" at at_; afterwards scanned_ is behind it. False: incomplete or bad.
bool RequestParser::take_length(std::string_view buffer, std::string_view too_big,
                                std::string_view& digits) {
  const auto from = std::max(scanned_, at_ + 1);
  const auto end = find(buffer, '\r', from);
  scanned_ = std::min(end, buffer.size());
  const auto read = buffer.substr(std::min(from, scanned_), scanned_ - std::min(from, scanned_));
  if (limits_.by_bytes && !read.empty() && !is_digits(read)) {
    refuse("a length is no number");
  } else if (scanned_ - at_ > limits_.line) {
    refuse(too_big);
  } else if (end == std::string_view::npos || end + 1 == buffer.size()) {
    wait_for(1);
  } else if (buffer[end + 1] != '\n') {
    refuse("expected a line feed after a carriage return");
  } else {
    digits = buffer.substr(at_ + 1, end - at_ - 1);
    scanned_ = end + 2;
    return true;
  }
  return false;
}

bool RequestParser::take_bulk_length(std::string_view buffer) {
  if (at_ < buffer.size() && buffer[at_] != '$') {
    refuse(std::string{"expected '$', got '"} + buffer[at_] + '\'');
    return false;
  }
  std::string_view digits;
  if (!take_length(buffer, "too big bulk count string", digits)) return false;
  std::int64_t size = 0;
  if (!parse_length(digits, size) || size < 0 || static_cast<std::size_t>(size) > limits_.bulk) {
    refuse("invalid bulk length");
    return false;
  }
  if (!limits_.authenticated && static_cast<std::size_t>(size) > limits_.unauthenticated_bulk) {
    refuse("unauthenticated bulk length");
    return false;
  }
  if (scanned_ + static_cast<std::size_t>(size) > limits_.whole) {
    refuse("too big request");
    return false;
  }
  at_ = scanned_;
  bulk_size_ = static_cast<std::size_t>(size);
  step_ = Step::bulk;
  return true;
}

bool RequestParser::take_bulk(std::string_view buffer) {
  const auto end = at_ + bulk_size_;
  if (buffer.size() < end + 2) {
    wait_for(end + 2 - buffer.size());
    return false;
  }
  if (buffer[end] != '\r' || buffer[end + 1] != '\n') {
    at_ = end;
    // Redis takes any two bytes here; what such a client sends next would be misread anyway.
    refuse("expected a line end after a bulk string");
    return false;
  }
  if (places_.size() == limits_.words) {
    refuse("too many words");
    return false;
  }
  places_.push_back({at_, bulk_size_});
  at_ = end + 2;
  --words_left_;
  step_ = Step::bulk_length;
  return true;
}

RequestParser::State RequestParser::wait_for(std::size_t bytes) noexcept {
  missing_ = bytes;
  return state_ = State::incomplete;
}

RequestParser::State RequestParser::refuse(std::string_view what) {
  error_ = "Protocol error: ";
  error_ += what;
  return state_ = State::bad;
}

}  // namespace sluice::resp
