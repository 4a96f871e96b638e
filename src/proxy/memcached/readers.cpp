#include "proxy/memcached/readers.hpp"

#include <algorithm>
#include <optional>

#include "base/integer.hpp"
#include "proxy/memcached/commands.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t line_end = 2;
constexpr std::size_t longest_request_line = std::size_t{1} << 20;
constexpr char binary_request = '\x80';

std::size_t find(std::string_view buffer, char c, std::size_t from) noexcept {
  return from < buffer.size() ? buffer.find(c, from) : std::string_view::npos;
}

/// What the first word of a line says of the reply.
enum class Line : std::uint8_t {
  whole,  ///< the line is the reply
  value,  ///< a value follows, and then more lines, up to END
  one_value,
  stat,  ///< more lines, up to END
  end,
  error,  ///< the reply, also in the place of END
};

struct Row {
  std::string_view word;
  Line line;
};
constexpr Row rows[] = {
    {"END", Line::end},         {"VALUE", Line::value},        {"STORED", Line::whole},
    {"HD", Line::whole},        {"VA", Line::one_value},       {"EN", Line::whole},
    {"NF", Line::whole},        {"NS", Line::whole},           {"EX", Line::whole},
    {"MN", Line::whole},        {"ME", Line::whole},           {"NOT_STORED", Line::whole},
    {"NOT_FOUND", Line::whole}, {"EXISTS", Line::whole},       {"DELETED", Line::whole},
    {"TOUCHED", Line::whole},   {"OK", Line::whole},           {"VERSION", Line::whole},
    {"RESET", Line::whole},     {"STAT", Line::stat},          {"ITEM", Line::stat},
    {"ERROR", Line::error},     {"CLIENT_ERROR", Line::error}, {"SERVER_ERROR", Line::error},
};

/// Empty: no line of memcached.
std::optional<Line> kind_of(std::string_view line) noexcept {
  const auto word = line.substr(0, line.find(' '));
  const auto* const row = std::ranges::find(rows, word, &Row::word);
  if (row != std::end(rows)) return row->line;
  if (is_digits(word)) return Line::whole;  // of incr and decr, blanks behind it
  return std::nullopt;
}

bool fits(char block, Line line) noexcept {
  if (line == Line::error) return true;
  if (block == 'V') return line == Line::value || line == Line::end;
  if (block == 'S') return line == Line::stat || line == Line::end;
  return true;
}

}  // namespace

void MemcachedRequestReader::start() {
  state_ = State::incomplete;
  scanned_ = line_ = size_ = 0;
  data_.reset();
  words_.clear();
}

RequestReader::State MemcachedRequestReader::read(std::string_view buffer) {
  if (state_ == State::bad) return state_;
  if (state_ == State::complete) start();
  if (buffer.empty()) return wait_for(1);
  return line_ == 0 ? read_line(buffer) : read_data(buffer);
}

/// By default a line ends with LF, as in memcached; twemproxy looks for CR, and LF must follow.
RequestReader::State MemcachedRequestReader::read_line(std::string_view buffer) {
  if (buffer.front() == binary_request)
    return refuse("the binary protocol is not served here: use the text protocol");
  const auto end = find(buffer, limits_.strict ? '\r' : '\n', scanned_);
  if (std::min(end, buffer.size()) > std::min(longest_request_line, limits_.whole))
    return refuse("the line is too long");
  scanned_ = std::min(end, buffer.size());
  if (end == std::string_view::npos) return wait_for(1);
  if (limits_.strict && end + 1 == buffer.size()) return wait_for(1);
  if (limits_.strict && buffer[end + 1] != '\n') return refuse("a line ends with CR LF");
  line_ = end + (limits_.strict ? 2 : 1);
  if (!split(buffer.substr(0, end))) return refuse("the line has too many words");
  data_ = memcached_data_size(words_);
  if (data_ && limits_.strict && !twemproxy_takes(*find_memcached_command(words_[0]), words_, true))
    return refuse("bad command line format");  // now: twemproxy does not wait for the data
  if (data_ && line_ + *data_ + line_end > limits_.whole)
    return refuse("object too large for cache");
  if (data_) return read_data(buffer);
  size_ = line_;
  return state_ = State::complete;
}

RequestReader::State MemcachedRequestReader::read_data(std::string_view buffer) {
  const auto end = line_ + *data_;
  if (buffer.size() < end + line_end) return wait_for(end + line_end - buffer.size());
  // Behind data of a wrong length nobody can tell data from commands: read no more.
  if (buffer.substr(end, line_end) != "\r\n") return refuse("bad data chunk");
  split(buffer.substr(0, line_ - (limits_.strict ? 2 : 1)));  // again: the buffer may have moved
  words_.push_back(buffer.substr(line_, *data_));
  size_ = end + line_end;
  return state_ = State::complete;
}

bool MemcachedRequestReader::split(std::string_view line) {
  words_.clear();
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (!line.empty()) {
    const auto end = std::min(line.find(' '), line.size());
    if (end > 0) words_.push_back(line.substr(0, end));
    if (words_.size() > limits_.words) return false;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (words_.empty()) words_.emplace_back();
  return true;
}

RequestReader::State MemcachedRequestReader::wait_for(std::size_t bytes) noexcept {
  missing_ = bytes;
  return state_ = State::incomplete;
}

RequestReader::State MemcachedRequestReader::refuse(std::string_view what) {
  error_ = what;
  return state_ = State::bad;
}

std::string MemcachedRequestReader::error_reply() const {
  if (limits_.strict) return {};
  const bool too_large = error_.starts_with("object");
  return (too_large ? "SERVER_ERROR " : "CLIENT_ERROR ") + std::string{error_} + "\r\n";
}

void MemcachedReplyReader::start() {
  state_ = State::incomplete;
  at_ = scanned_ = 0;
  block_ = 0;
}

ReplyReader::State MemcachedReplyReader::wait_for(std::size_t bytes,
                                                  std::size_t buffered) noexcept {
  missing_ = bytes;
  too_long_ = buffered + bytes > size_limit_;
  return state_ = too_long_ ? State::bad : State::incomplete;
}

ReplyReader::State MemcachedReplyReader::read(std::string_view buffer) {
  if (state_ == State::complete) start();
  if (state_ == State::bad) return state_;
  for (;;) {
    const auto found = buffer.find('\n', std::max(scanned_, at_));
    const auto end = std::min(found, buffer.size());
    scanned_ = end;
    if (found == std::string_view::npos) return wait_for(1, buffer.size());
    const auto line = buffer.substr(at_, end + 1 - at_);
    if (!line.ends_with("\r\n")) return state_ = State::bad;
    const auto text = line.substr(0, line.size() - line_end);
    const auto kind = kind_of(text);
    if (!kind || !fits(block_, *kind)) return state_ = State::bad;
    auto next = end + 1;
    if (*kind == Line::value || *kind == Line::one_value) {
      const auto size = value_size(text);
      if (!size) return state_ = State::bad;
      next += *size + line_end;
      if (next > buffer.size()) return wait_for(next - buffer.size(), buffer.size());
      if (buffer.substr(next - line_end, line_end) != "\r\n") return state_ = State::bad;
    }
    at_ = next;
    too_long_ = at_ > size_limit_;
    if (too_long_) return state_ = State::bad;
    if (*kind != Line::value && *kind != Line::stat) return state_ = State::complete;
    block_ = *kind == Line::value ? 'V' : 'S';
  }
}

}  // namespace sluice::proxy
