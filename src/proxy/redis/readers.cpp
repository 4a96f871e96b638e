#include "proxy/redis/readers.hpp"

#include "proxy/redis/wire.hpp"

namespace sluice::proxy {

RequestReader::State RedisRequestReader::read(std::string_view buffer) {
  if (strict_ && !buffer.empty() && buffer.front() != '*') return State::bad;
  const auto state = static_cast<State>(parser_.parse(buffer));
  // twemproxy has no empty request either.
  return strict_ && state == State::complete && parser_.words().empty() ? State::bad : state;
}

std::string RedisRequestReader::error_reply() const {
  return strict_ ? std::string{} : "-ERR " + parser_.error() + "\r\n";
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
