#include "resp/writer.hpp"

#include <charconv>
#include <cmath>
#include <cstring>

namespace sluice::resp {
namespace {

constexpr std::size_t digits_of(std::uint64_t number) noexcept {
  std::size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

constexpr std::size_t header_size(std::uint64_t number) noexcept {
  return 1 + digits_of(number) + 2;
}

constexpr std::size_t bulk_size(std::size_t length) noexcept {
  return header_size(length) + length + 2;
}

char* put_line_end(char* at) noexcept {
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

char* put_header(char* at, char type, std::uint64_t number) noexcept {
  *at++ = type;
  constexpr std::size_t longest = 20;
  at = std::to_chars(at, at + longest, number).ptr;
  return put_line_end(at);
}

char* put_bulk(char* at, std::string_view text) noexcept {
  at = put_header(at, '$', text.size());
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return put_line_end(at + text.size());
}

/// Appends `size` bytes that `put(char*)` writes; no byte is cleared first.
template <class Put>
void append(std::string& out, std::size_t size, Put put) {
  const auto before = out.size();
  const auto after = before + size;
  out.resize_and_overwrite(after, [&](char* bytes, std::size_t /* g++ 12 gives the capacity */) {
    put(bytes + before);
    return after;
  });
}

std::string_view text_of(double value, std::span<char> buffer) noexcept {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

}  // namespace

std::size_t command_size(Words words) noexcept {
  std::size_t size = header_size(words.size());
  for (const auto word : words) size += bulk_size(word.size());
  return size;
}

void append_command(std::string& out, Words words) {
  append(out, command_size(words), [words](char* at) {
    at = put_header(at, '*', words.size());
    for (const auto word : words) at = put_bulk(at, word);
  });
}

void append_command_header(std::string& out, std::size_t count) {
  append(out, header_size(count), [count](char* at) { put_header(at, '*', count); });
}

void append_bulk(std::string& out, std::string_view text) {
  append(out, bulk_size(text.size()), [text](char* at) { put_bulk(at, text); });
}

void ReplyWriter::line(char type, std::string_view text) {
  append(out_, 1 + text.size() + 2, [&](char* at) {
    *at++ = type;
    for (const char c : text) *at++ = c == '\r' || c == '\n' ? ' ' : c;
    put_line_end(at);
  });
}

void ReplyWriter::header(char type, std::uint64_t size) {
  append(out_, header_size(size), [&](char* at) { put_header(at, type, size); });
}

void ReplyWriter::null() { out_ += resp3() ? "_\r\n" : "$-1\r\n"; }
void ReplyWriter::null_array() { out_ += resp3() ? "_\r\n" : "*-1\r\n"; }

void ReplyWriter::integer(std::int64_t value) {
  char text[24];
  line(':', {text, std::to_chars(text, text + sizeof text, value).ptr});
}

void ReplyWriter::number(double value) {
  char buffer[32];
  const auto text = text_of(value, buffer);
  if (resp3())
    line(',', text);
  else
    bulk(text);
}

void ReplyWriter::big_number(std::string_view digits) {
  if (resp3())
    line('(', digits);
  else
    bulk(digits);
}

void ReplyWriter::boolean(bool value) {
  if (resp3())
    out_ += value ? "#t\r\n" : "#f\r\n";
  else
    out_ += value ? ":1\r\n" : ":0\r\n";
}

void ReplyWriter::simple(std::string_view text) { line('+', text); }
void ReplyWriter::bulk(std::string_view text) { append_bulk(out_, text); }

void ReplyWriter::verbatim(std::string_view text) {
  if (!resp3()) return bulk(text);
  constexpr std::string_view format = "txt:";
  header('=', format.size() + text.size());
  out_ += format;
  out_ += text;
  out_ += "\r\n";
}

void ReplyWriter::error(std::string_view text) { line('-', text); }
void ReplyWriter::array(std::size_t size) { header('*', size); }
void ReplyWriter::set(std::size_t size) { header(resp3() ? '~' : '*', size); }

void ReplyWriter::map(std::size_t pairs) {
  if (resp3())
    header('%', pairs);
  else
    header('*', pairs * 2);
}

void ReplyWriter::push(std::size_t size) { header(resp3() ? '>' : '*', size); }

void ReplyWriter::value(const Value& value) {
  std::vector<std::span<const Value>> open;  // of the aggregates in hand, what is to be written
  const auto write = [&](const Value& one) {
    head(one);
    if (one.is_aggregate()) open.emplace_back(one.as_items());
  };
  write(value);
  while (!open.empty()) {
    auto& items = open.back();
    if (items.empty()) {
      open.pop_back();
      continue;
    }
    const Value& next = items.front();
    items = items.subspan(1);
    write(next);
  }
}

/// All of a value but its items.
void ReplyWriter::head(const Value& value) {
  switch (value.type()) {
    case Value::Type::null: return null();
    case Value::Type::boolean: return boolean(value.as_boolean());
    case Value::Type::integer: return integer(value.as_integer());
    case Value::Type::number: return number(value.as_number());
    case Value::Type::big_number: return big_number(value.as_text());
    case Value::Type::simple_string: return simple(value.as_text());
    case Value::Type::bulk_string: return bulk(value.as_text());
    case Value::Type::verbatim: return verbatim(value.as_text());
    case Value::Type::error: return error(value.as_text());
    case Value::Type::array: return array(value.as_items().size());
    case Value::Type::set: return set(value.as_items().size());
    case Value::Type::map: return map(value.as_items().size() / 2);
    case Value::Type::push: return push(value.as_items().size());
  }
}

}  // namespace sluice::resp
