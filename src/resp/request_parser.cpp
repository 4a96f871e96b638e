#include "resp/request_parser.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "resp/inline_words.hpp"

namespace sluice::resp {
namespace {

/// A number as Redis reads it: no plus, no leading zero, no blank.
bool parse_length(std::string_view text, std::int64_t& number) {
  const auto digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits.front() == '0' && text.size() > 1)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::size_t find(std::string_view buffer, char c, std::size_t from) {
  if (from >= buffer.size()) return std::string_view::npos;
  const auto* found =
      static_cast<const char*>(std::memchr(buffer.data() + from, c, buffer.size() - from));
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(found - buffer.data());
}

}  // namespace

RequestParser::State RequestParser::parse(std::string_view buffer) {
  if (state_ == State::bad) return state_;
  if (state_ == State::complete) start();
  if (buffer.size() <= at_) return wait_for(1);
  if (step_ == Step::begin) {
    if (buffer.front() == '*') return count(buffer);
    step_ = Step::line;
  }
  return step_ == Step::line ? typed_line(buffer) : words_of_array(buffer);
}

void RequestParser::start() {
  state_ = State::incomplete;
  step_ = Step::begin;
  at_ = scanned_ = 0;
  places_.clear();
  words_.clear();
}

RequestParser::State RequestParser::typed_line(std::string_view buffer) {
  const auto end = find(buffer, '\n', scanned_);
  scanned_ = buffer.size();
  if (std::min(end, buffer.size()) > limits_.line) return refuse("too big inline request");
  if (end == std::string_view::npos) return wait_for(1);
  auto line = buffer.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!split_inline(line, text_, words_)) return refuse("unbalanced quotes in request");
  at_ = end + 1;
  return finish();
}

RequestParser::State RequestParser::count(std::string_view buffer) {
  std::string_view digits;
  if (!take_length(buffer, "too big mbulk count string", digits)) return state_;
  std::int64_t number = 0;
  if (!parse_length(digits, number) || number > static_cast<std::int64_t>(limits_.words))
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
  words_.reserve(places_.size());
  for (const auto place : places_) words_.push_back(buffer.substr(place.begin, place.size));
  return finish();
}

/// The line "Xdigits\r\n" at at_; afterwards scanned_ is behind it. False: incomplete or bad.
bool RequestParser::take_length(std::string_view buffer, std::string_view too_big,
                                std::string_view& digits) {
  const auto end = find(buffer, '\r', std::max(scanned_, at_));
  scanned_ = std::min(end, buffer.size());
  if (scanned_ - at_ > limits_.line) {
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
    // Redis takes any two bytes here; a client that errs so is lost all the same.
    refuse("expected a line end after a bulk string");
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
