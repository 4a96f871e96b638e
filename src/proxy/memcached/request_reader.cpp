#include <algorithm>
#include <cstring>

#include "proxy/memcached/commands.hpp"
#include "proxy/memcached/readers.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t line_end = 2;
constexpr std::size_t longest_line = std::size_t{1} << 20;
constexpr char binary_request = '\x80';

std::size_t find(std::string_view buffer, char c, std::size_t from) noexcept {
  return from < buffer.size() ? buffer.find(c, from) : std::string_view::npos;
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
  if (std::min(end, buffer.size()) > std::min(longest_line, limits_.whole))
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
  // What follows data of a wrong length could be data or commands; nobody can tell, so nothing more
  // is read.
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

}  // namespace sluice::proxy
