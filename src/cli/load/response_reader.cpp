#include "cli/load/response_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.hpp"

namespace sluice::load {
namespace {

constexpr std::string_view protocol = "HTTP/";
constexpr std::string_view end_of_head = "\r\n\r\n";
constexpr std::size_t most_fields = 100;
constexpr std::int64_t longest_retry_s = 3600;

constexpr char small(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_word(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return small(x) == small(y); });
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_name_character(char c) noexcept {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return is_digit(c) || (small(c) >= 'a' && small(c) <= 'z') || marks.find(c) != marks.npos;
}

bool is_field_character(char c) noexcept {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

std::string_view without_blanks(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Digits alone: no sign, no blank.
std::optional<std::size_t> number_in(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18 || !std::ranges::all_of(text, is_digit)) return {};
  return parse_integer<std::size_t>(std::string{text});
}

bool has_option(std::string_view list, std::string_view option) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (is_word(without_blanks(list.substr(0, comma)), option)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

std::size_t ResponseReader::consume(std::string_view bytes) {
  std::size_t used = 0;
  if (state_ == State::head) used = consume_head(bytes);
  if (state_ == State::body) used += consume_body(bytes.substr(used));
  return used;
}

std::size_t ResponseReader::consume_head(std::string_view bytes) {
  const auto before = head_.size();
  head_.append(bytes.substr(0, std::min(bytes.size(), largest_head - before)));
  if (!head_.starts_with(protocol.substr(0, head_.size()))) {
    refuse("the answer is not HTTP");
    return head_.size() - before;
  }
  const auto from = before < end_of_head.size() ? 0 : before - end_of_head.size() + 1;
  const auto end = head_.find(end_of_head, from);
  if (end == head_.npos) {
    if (head_.size() == largest_head)
      refuse(fmt::format("the head of the answer is larger than {} bytes", largest_head));
    return head_.size() - before;
  }
  head_.resize(end + end_of_head.size());
  read_head();
  return head_.size() - before;
}

void ResponseReader::read_head() {
  std::string_view rest{head_};
  rest.remove_suffix(2);  // the line that is empty
  std::size_t lines = 0;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    if (!std::ranges::all_of(line, is_field_character)) {
      refuse("the head of the answer has a control character");
      return;
    }
    if (lines > most_fields) {
      refuse(fmt::format("the answer has more than {} fields", most_fields));
      return;
    }
    if (!(lines++ == 0 ? read_status(line) : read_field(line))) return;
  }
  const bool has_no_body = answer_.status == 204 || answer_.status == 304;
  if (!has_no_body && !length_) {
    refuse("the answer does not say its length; one that the connection ends is not taken");
    return;
  }
  if (has_no_body) length_ = 0;
  state_ = *length_ == 0 ? State::complete : State::body;
}

bool ResponseReader::read_status(std::string_view line) {
  const bool is_1_1 = line.starts_with("HTTP/1.1 ");
  if (!is_1_1 && !line.starts_with("HTTP/1.0 ")) return refuse("the answer is not HTTP/1.1");
  const auto code = number_in(line.substr(9, 3));
  if (line.size() < 12 || !code || (line.size() > 12 && line[12] != ' '))
    return refuse("the answer has no status of three digits");
  if (*code < 200 || *code > 599)
    return refuse(fmt::format("status {}: only final answers are taken", *code));
  answer_.status = static_cast<int>(*code);
  answer_.keeps_alive = is_1_1;
  return true;
}

bool ResponseReader::read_field(std::string_view line) {
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  if (colon == line.npos || name.empty() || !std::ranges::all_of(name, is_name_character))
    return refuse("the head of the answer has a line that is no field");
  return read_known_field(name, without_blanks(line.substr(colon + 1)));
}

bool ResponseReader::read_known_field(std::string_view name, std::string_view value) {
  if (is_word(name, "Transfer-Encoding"))
    return refuse(
        fmt::format("the answer is sent as '{}'; an answer of known length is taken alone",
                    value.substr(0, 40)));
  if (is_word(name, "Content-Length")) {
    if (length_) return refuse("the answer says its length twice");
    length_ = number_in(value);
    if (!length_) return refuse("the length of the answer is no number");
    if (*length_ > largest_body)
      return refuse(fmt::format("the answer is larger than {} bytes", largest_body));
  } else if (is_word(name, "Connection")) {
    if (has_option(value, "close")) answer_.keeps_alive = false;
    if (has_option(value, "keep-alive")) answer_.keeps_alive = true;
  } else if (is_word(name, "Retry-After")) {
    if (const auto seconds = number_in(value))  // as a date it is not read
      answer_.retry_after = std::chrono::seconds{
          std::min<std::int64_t>(static_cast<std::int64_t>(*seconds), longest_retry_s)};
  }
  return true;
}

std::size_t ResponseReader::consume_body(std::string_view bytes) {
  const auto used = std::min(bytes.size(), *length_ - answer_.body.size());
  answer_.body.append(bytes.substr(0, used));
  if (answer_.body.size() == *length_) state_ = State::complete;
  return used;
}

HttpAnswer ResponseReader::take() {
  auto answer = std::move(answer_);
  reset();
  return answer;
}

void ResponseReader::reset() {
  state_ = State::head;
  head_.clear();
  length_.reset();
  answer_ = {};
  why_.clear();
}

bool ResponseReader::refuse(std::string why) {
  state_ = State::bad;
  why_ = std::move(why);
  return false;
}

}  // namespace sluice::load
