#include "proxy/memcached/readers.hpp"

#include <algorithm>
#include <optional>

#include "base/integer.hpp"
#include "proxy/memcached/commands.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t line_end_size = 2;
constexpr std::size_t longest_get_line = std::size_t{1} << 20;
constexpr char binary_request = '\x80';

std::size_t find(std::string_view buffer, char c, std::size_t from) noexcept {
  return from < buffer.size() ? buffer.find(c, from) : std::string_view::npos;
}

std::size_t longest_line(std::string_view line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line.starts_with("get ") || line.starts_with("gets ") ? longest_get_line
                                                               : longest_memcached_line;
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

struct LineRow {
  std::string_view word;
  Line line;
};
constexpr LineRow line_rows[] = {
    {"END", Line::end},
    {"VALUE", Line::value},
    {"STORED", Line::whole},
    {"HD", Line::whole},
    {"VA", Line::one_value},
    {"EN", Line::whole},
    {"NF", Line::whole},
    {"NS", Line::whole},
    {"EX", Line::whole},
    {"MN", Line::whole},
    {"ME", Line::whole},
    {"NOT_STORED", Line::whole},
    {"NOT_FOUND", Line::whole},
    {"EXISTS", Line::whole},
    {"DELETED", Line::whole},
    {"TOUCHED", Line::whole},
    {"OK", Line::whole},
    {"VERSION", Line::whole},
    {"RESET", Line::whole},
    {"STAT", Line::stat},
    {"ITEM", Line::stat},
    {"PREFIX", Line::stat},
    {"ERROR", Line::error},
    {"CLIENT_ERROR", Line::error},
    {"SERVER_ERROR", Line::error},
};

/// Empty: no line of memcached.
std::optional<Line> kind_of(std::string_view line) noexcept {
  const auto word = line.substr(0, line.find(' '));
  const auto* const row = std::ranges::find(line_rows, word, &LineRow::word);
  if (row != std::end(line_rows)) return row->line;
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
    return refuse("CLIENT_ERROR the binary protocol is not served here: use the text protocol\r\n");
  const auto end = find(buffer, limits_.strict ? '\r' : '\n', scanned_);
  if (std::min(end, buffer.size()) > std::min(longest_line(buffer), limits_.whole))
    return refuse("CLIENT_ERROR the line is too long\r\n");
  scanned_ = std::min(end, buffer.size());
  if (end == std::string_view::npos) return wait_for(1);
  if (limits_.strict && end + 1 == buffer.size()) return wait_for(1);
  if (limits_.strict && buffer[end + 1] != '\n')
    return refuse("CLIENT_ERROR a line ends with CR LF\r\n");
  line_ = end + (limits_.strict ? 2 : 1);
  if (!split(buffer.substr(0, line_)))
    return refuse("CLIENT_ERROR the line has too many words\r\n");
  const auto* const command = find_memcached_command(words_[0]);
  if (command != nullptr && command->has_data()) return begin_data(*command, buffer);
  size_ = line_;
  return state_ = State::complete;
}

/// Behind a line that is refused nobody can tell data from commands: read no more, and now.
RequestReader::State MemcachedRequestReader::begin_data(const MemcachedCommand& command,
                                                        std::string_view buffer) {
  const auto fault = !limits_.strict                    ? fault_of(command, words_)
                     : twemproxy_takes(command, words_) ? std::string_view{}
                                                        : std::string_view{"ERROR\r\n"};
  if (!fault.empty()) return refuse(fault);
  data_ = memcached_data_size(command, words_);
  if (line_ + *data_ + line_end_size > limits_.whole)
    return refuse("SERVER_ERROR object too large for cache\r\n");
  return read_data(buffer);
}

RequestReader::State MemcachedRequestReader::read_data(std::string_view buffer) {
  const auto end = line_ + *data_;
  if (buffer.size() < end + line_end_size) return wait_for(end + line_end_size - buffer.size());
  if (buffer.substr(end, line_end_size) != "\r\n") return refuse("CLIENT_ERROR bad data chunk\r\n");
  split(buffer.substr(0, line_));  // again: the buffer may have moved
  words_.push_back(buffer.substr(line_, *data_));
  size_ = end + line_end_size;
  return state_ = State::complete;
}

/// `line` is with its end.
bool MemcachedRequestReader::split(std::string_view line) {
  words_.clear();
  auto rest = line.substr(0, line.size() - (line.ends_with("\r\n") ? 2 : 1));
  std::size_t bytes = 1;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (end > 0) words_.push_back(rest.substr(0, end));
    if (end > 0) bytes += end + 1;
    if (words_.size() > limits_.words) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (words_.empty()) words_.emplace_back();
  if (!words_.front().empty() && shorten_numbers()) bytes = 0;
  is_canonical_ = bytes == line.size() && line.ends_with("\r\n");
  return true;
}

/// memcached keeps 32 bits of flags and of a time. True: there were more.
bool MemcachedRequestReader::shorten_numbers() {
  constexpr std::size_t most_digits = 9;  // so many always fit
  const auto* const command = find_memcached_command(words_[0]);
  if (command == nullptr || command->kind != MemcachedKind::store || words_.size() < 4)
    return false;
  bool shortened = false;
  for (const std::size_t at : {2, 3}) {
    if (words_[at].size() <= most_digits) continue;
    const auto number = parse_integer<std::uint64_t>(words_[at]);
    if (!number) continue;
    auto& text = numbers_[at - 2];
    text = at == 2 ? std::to_string(static_cast<std::uint32_t>(*number))
                   : std::to_string(static_cast<std::int32_t>(*number));
    words_[at] = text;
    shortened = true;
  }
  return shortened;
}

std::string_view MemcachedRequestReader::wire(std::string_view buffer) {
  if (is_canonical_) return buffer.substr(0, size_);
  wire_.clear();
  append_memcached_line(wire_, words().first(words_.size() - (data_ ? 1 : 0)));
  if (data_) wire_.append(words_.back()).append("\r\n");
  return wire_;
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
  return limits_.strict ? std::string{} : std::string{error_};
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
    const auto text = line.substr(0, line.size() - line_end_size);
    const auto kind = kind_of(text);
    if (!kind || !fits(block_, *kind)) return state_ = State::bad;
    auto next = end + 1;
    if (*kind == Line::value || *kind == Line::one_value) {
      const auto size = value_size(text);
      if (!size) return state_ = State::bad;
      next += *size + line_end_size;
      if (next > buffer.size()) return wait_for(next - buffer.size(), buffer.size());
      if (buffer.substr(next - line_end_size, line_end_size) != "\r\n") return state_ = State::bad;
    }
    at_ = next;
    too_long_ = at_ > size_limit_;
    if (too_long_) return state_ = State::bad;
    if (*kind != Line::value && *kind != Line::stat) return state_ = State::complete;
    block_ = *kind == Line::value ? 'V' : 'S';
  }
}

}  // namespace sluice::proxy
