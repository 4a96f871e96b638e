#include "resp/reply_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/integer.hpp"

namespace sluice::resp {
namespace {

constexpr std::string_view line_end = "\r\n";
/// No announced size makes us reserve more than this (in an aggregate within n others an nth); the
/// rest grows as it comes.
constexpr std::size_t most_items_reserved = 1024;
constexpr std::size_t most_bytes_reserved = 1 << 20;

std::string shown(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code > 0x20 && code < 0x7f ? fmt::format("'{}'", byte)
                                    : fmt::format("byte 0x{:02x}", code);
}

std::string too_large(std::size_t limit) { return fmt::format("larger than {} bytes", limit); }

std::string long_line(std::size_t limit) {
  return fmt::format("a line longer than {} bytes", limit);
}

}  // namespace

bool ReplyParser::is_in_push() const noexcept {
  if (excess_) return excess_->is_push.value_or(false);
  return !frames_.empty() && !frames_.front().attribute &&
         frames_.front().type == Value::Type::push;
}

bool ReplyParser::is_in_reply() const noexcept {
  if (excess_) return !excess_->is_push.value_or(true);
  if (!frames_.empty()) return !frames_.front().attribute && !is_in_push();
  const bool in_line = !line_.empty() && !line_done_;
  return bulk_type_ || (in_line && line_.front() != '>' && line_.front() != '|');
}

void ReplyParser::reset() { *this = ReplyParser{limits_}; }

std::optional<Value> ReplyParser::next(std::string_view& input) {
  for (;;) {
    Value value;
    switch (excess_ ? pass_over(input, value) : element(input, value)) {
      case Got::nothing: return std::nullopt;
      case Got::opened: break;
      case Got::value:
        if (place(value)) return value;
    }
  }
}

/// Puts a finished value into the aggregate around it, and that too when it is full. True: `value`
/// is a whole reply.
bool ReplyParser::place(Value& value) {
  while (!frames_.empty()) {
    ++items_;
    if (held() > limits_.whole) {
      --exceed(too_large(limits_.whole), value.type()).elements;
      return false;
    }
    auto& frame = frames_.back();
    frame.items.push_back(std::move(value));
    if (--frame.left > 0) return false;
    const bool attribute = frame.attribute;
    value = Value::aggregate(frame.type, std::move(frame.items));
    frames_.pop_back();
    if (attribute) return false;
  }
  return true;
}

ReplyParser::Got ReplyParser::element(std::string_view& input, Value& value) {
  if (bulk_type_) return go_on_with_bulk(input, value);
  const auto line = take_line(input);
  if (!line) return Got::nothing;
  if (line->empty()) refuse("expected a type, found an empty line");
  const auto text = line->substr(1);
  using Type = Value::Type;
  if (line_too_long_) {
    if (line->front() != '-') {
      --exceed(long_line(limits_.line), Type::simple_string).elements;
      return Got::opened;
    }
    value = Value::error(std::string{text} + "...");
    return Got::value;
  }
  switch (line->front()) {
    case '$': return begin_bulk(Type::bulk_string, text, input, value);
    case ':': value = Value::integer(number<std::int64_t>(text, "integer")); return Got::value;
    case '+': value = Value::simple_string(std::string{text}); return Got::value;
    case '-': value = Value::error(std::string{text}); return Got::value;
    case '*': return open(Type::array, false, text, 1, value);
    case '%': return open(Type::map, false, text, 2, value);
    case '~': return open(Type::set, false, text, 1, value);
    case '>': return open(Type::push, false, text, 1, value);
    case '|': return open(Type::map, true, text, 2, value);
    case '=': return begin_bulk(Type::verbatim, text, input, value);
    case '!': return begin_bulk(Type::error, text, input, value);
    case ',': value = Value::number(number<double>(text, "double")); return Got::value;
    case '(': value = Value::text(Type::big_number, std::string{text}); return Got::value;
    case '_':
      if (!text.empty()) refuse("expected nothing after '_'");
      return Got::value;
    case '#':
      if (text != "t" && text != "f") refuse("expected #t or #f");
      value = Value::boolean(text == "t");
      return Got::value;
    case ';':
    case '.': refuse("streamed strings and aggregates are not supported");
    default: refuse("expected a type, found " + shown(line->front()));
  }
}

ReplyParser::Got ReplyParser::open(Value::Type type, bool attribute, std::string_view count,
                                   std::size_t per_count, Value& value) {
  if (type == Value::Type::array && count == "-1") return Got::value;  // RESP2's null array
  const auto size = length(count, limits_.items / per_count, "aggregate length") * per_count;
  if (size == 0 && attribute) return Got::opened;  // nothing to skip
  if (size == 0) {
    value = Value::aggregate(type, {});
    return Got::value;
  }
  if (frames_.size() >= limits_.depth) {
    auto& excess = exceed(fmt::format("nested deeper than {}", limits_.depth), type, attribute);
    excess.elements += size - (attribute ? 0 : 1);
    return Got::opened;
  }
  auto& frame = frames_.emplace_back(Frame{type, attribute, size, {}});
  frame.items.reserve(std::min(size, most_items_reserved / frames_.size()));
  return Got::opened;
}

ReplyParser::Got ReplyParser::begin_bulk(Value::Type type, std::string_view digits,
                                         std::string_view& input, Value& value) {
  if (type == Value::Type::bulk_string && digits == "-1") return Got::value;  // RESP2's null
  const auto size = length(digits, limits_.passed_over, "bulk length");
  if (size > limits_.bulk || held() + size > limits_.whole) {
    auto& excess = exceed(size > limits_.bulk
                              ? fmt::format("a string of {} bytes, above {}", size, limits_.bulk)
                              : too_large(limits_.whole),
                          type);
    excess.bytes = size;
    excess.in_string = true;
    return Got::opened;
  }
  if (input.size() >= size + line_end.size()) {
    if (input.substr(size, line_end.size()) != line_end)
      refuse("expected a line end after a string");
    value = whole_bulk(type, input.substr(0, size));
    input.remove_prefix(size + line_end.size());
    taken_ += size + line_end.size();
    return Got::value;
  }
  bulk_type_ = type;
  bulk_left_ = size + line_end.size();
  bulk_.clear();
  bulk_.reserve(std::min(bulk_left_, most_bytes_reserved));
  return go_on_with_bulk(input, value);
}

ReplyParser::Got ReplyParser::go_on_with_bulk(std::string_view& input, Value& value) {
  const auto part = std::min(bulk_left_, input.size());
  bulk_.append(input.data(), part);
  input.remove_prefix(part);
  taken_ += part;
  bulk_left_ -= part;
  if (bulk_left_ > 0) return Got::nothing;
  if (!bulk_.ends_with(line_end)) refuse("expected a line end after a string");
  bulk_.resize(bulk_.size() - line_end.size());
  const auto type = *std::exchange(bulk_type_, std::nullopt);
  value =
      type == Value::Type::verbatim ? whole_bulk(type, bulk_) : Value::text(type, std::move(bulk_));
  bulk_ = {};
  return Got::value;
}

Value ReplyParser::whole_bulk(Value::Type type, std::string_view text) const {
  if (type == Value::Type::verbatim) {
    constexpr std::size_t format = 4;  // "txt:"
    if (text.size() < format || text[format - 1] != ':')
      refuse("a verbatim string without its format");
    text.remove_prefix(format);
  }
  return Value::text(type, std::string{text});
}

/// From here on the reply in hand is passed over; `type` is that of the element in hand, which is
/// still to come.
ReplyParser::Excess& ReplyParser::exceed(std::string why, Value::Type type, bool attribute) {
  const bool in_attribute = frames_.empty() ? attribute : frames_.front().attribute;
  if (!frames_.empty()) type = frames_.front().type;
  std::uint64_t elements = 1;  // the reply itself
  for (const auto& frame : frames_) elements += frame.left - (frame.attribute ? 0 : 1);
  frames_.clear();
  excess_ =
      std::make_unique<Excess>(Excess{.why = std::move(why), .is_push = {}, .elements = elements});
  if (!in_attribute) excess_->is_push = type == Value::Type::push;
  return *excess_;
}

ReplyParser::Got ReplyParser::pass_over(std::string_view& input, Value& value) {
  while (excess_->elements > 0)
    if (!(excess_->in_string ? pass_over_string(input) : pass_over_head(input)))
      return Got::nothing;
  value = excess_->is_push.value_or(false)
              ? Value::aggregate(Value::Type::push, {})
              : Value::error(fmt::format("{}{}", beyond_a_limit, excess_->why));
  excess_.reset();
  return Got::value;
}

/// False: its end is not there yet.
bool ReplyParser::pass_over_string(std::string_view& input) {
  const auto part = std::min<std::uint64_t>(excess_->bytes, input.size());
  input.remove_prefix(part);
  taken_ += part;
  excess_->bytes -= part;
  if (excess_->bytes > 0) return false;
  const auto end = take_line(input);
  if (!end) return false;
  if (!end->empty()) refuse("expected a line end after a string");
  excess_->in_string = false;
  --excess_->elements;
  return true;
}

/// The line with which an element begins. False: it is not there yet.
bool ReplyParser::pass_over_head(std::string_view& input) {
  const auto line = take_line(input);
  if (!line) return false;
  if (line->empty()) refuse("expected a type, found an empty line");
  auto& excess = *excess_;
  if (excess.elements == 1 && !excess.is_push && line->front() != '|')
    excess.is_push = line->front() == '>';
  const auto text = line->substr(1);
  const auto items = [&](std::size_t per_count) {
    return length(text, limits_.items / per_count, "aggregate length") * per_count;
  };
  const bool is_null = text == "-1" && (line->front() == '$' || line->front() == '*');
  switch (is_null ? '_' : line->front()) {
    case '$':
    case '=':
    case '!':
      excess.bytes = length(text, limits_.passed_over, "bulk length");
      excess.in_string = true;
      return true;
    case '*':
    case '~':
    case '>': excess.elements += items(1); break;
    case '%': excess.elements += items(2); break;
    case '|': excess.elements += items(2) + 1; break;
    case ':':
    case '+':
    case '-':
    case ',':
    case '(':
    case '_':
    case '#': break;
    default: refuse("expected a type, found " + shown(line->front()));
  }
  if (--excess.elements > limits_.passed_over)
    refuse(fmt::format("{} elements to come are over the limit of {}", excess.elements,
                       limits_.passed_over));
  return true;
}

/// The next line without its end; it stays good until the parser is asked again.
std::optional<std::string_view> ReplyParser::take_line(std::string_view& input) {
  if (line_done_) {
    line_.clear();
    line_done_ = line_too_long_ = false;
  }
  if (line_.empty()) offset_ = taken_;
  if (offset_ == taken_ && frames_.empty() && !excess_) {
    began_ = taken_;
    items_ = 0;
  }
  if (input.empty()) return std::nullopt;
  const auto* found = static_cast<const char*>(std::memchr(input.data(), '\n', input.size()));
  const auto part =
      found != nullptr ? static_cast<std::size_t>(found - input.data()) + 1 : input.size();
  std::string_view line = input.substr(0, part);
  input.remove_prefix(part);
  taken_ += part;
  if (line_too_long_ || line_.size() + part > limits_.line)
    return take_long_line(line, found != nullptr);
  if (found == nullptr || !line_.empty()) {
    line_ += line;
    if (found == nullptr) return std::nullopt;
    line = line_;
    line_done_ = true;
  }
  if (!line.ends_with(line_end)) refuse("a line that ends without CR LF");
  line.remove_suffix(line_end.size());
  return line;
}

/// The next piece of a line of which only the beginning is kept, and only of text.
std::optional<std::string_view> ReplyParser::take_long_line(std::string_view piece, bool ends) {
  if (!line_too_long_) {
    if (!line_.empty()) line_last_ = line_.back();
    line_ += piece.substr(0, limits_.line - line_.size());
    if (line_.front() != '+' && line_.front() != '-') refuse(long_line(limits_.line));
    line_too_long_ = true;
  }
  const char before_last = piece.size() > 1 ? piece[piece.size() - 2] : line_last_;
  line_last_ = piece.back();
  if (!ends) return std::nullopt;
  if (before_last != '\r') refuse("a line that ends without CR LF");
  line_done_ = true;
  return line_;
}

std::size_t ReplyParser::length(std::string_view digits, std::size_t most,
                                std::string_view what) const {
  if (digits == "?") refuse("streamed strings and aggregates are not supported");
  const auto size = number<std::int64_t>(digits, what);
  if (size < 0) refuse(fmt::format("negative {}", what));
  if (static_cast<std::uint64_t>(size) > most)
    refuse(fmt::format("{} {} is over the limit of {}", what, size, most));
  return static_cast<std::size_t>(size);
}

template <class Number>
Number ReplyParser::number(std::string_view text, std::string_view what) const {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  std::optional<Number> parsed;
  if constexpr (std::is_integral_v<Number>)
    parsed = parse_integer<Number>(text);
  else
    parsed = parse_decimal(text);
  if (!parsed) refuse(fmt::format("invalid {}", what));
  return *parsed;
}

void ReplyParser::refuse(const std::string& what) const {
  throw Error{Errc::protocol,
              fmt::format("not a reply of Redis at byte {} of the connection: {}", offset_, what),
              Effect::unknown};
}

}  // namespace sluice::resp
