#include <algorithm>
#include <optional>

#include "proxy/memcached/commands.hpp"
#include "proxy/memcached/readers.hpp"
#include "proxy/memcached/values.hpp"

namespace sluice::proxy {
namespace {

using State = ReplyReader::State;
constexpr std::size_t line_end = 2;
constexpr std::size_t longest_line = std::size_t{64} << 10;

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
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (word.empty() || !std::ranges::all_of(word, is_digit))
    return std::nullopt;  // of incr and decr, blanks behind it
  return Line::whole;
}

bool fits(char block, Line line) noexcept {
  if (line == Line::error) return true;
  if (block == 'V') return line == Line::value || line == Line::end;
  if (block == 'S') return line == Line::stat || line == Line::end;
  return true;
}

}  // namespace

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
    if (end - at_ > longest_line) return state_ = State::bad;
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
