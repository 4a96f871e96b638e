#include "support/proxied_line.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace sluice::test {
namespace {

constexpr std::array<std::string_view, 6> subscribing{
    "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe"};

std::string lower(std::string_view text) {
  std::string result{text};
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_subscribing(std::string_view word) {
  return std::ranges::find(subscribing, word) != subscribing.end();
}

/// A subscription is confirmed channel by channel.
std::size_t replies_to(const std::vector<std::string>& words) {
  return is_subscribing(lower(words.front())) ? std::max<std::size_t>(words.size() - 1, 1) : 1;
}

std::string_view first_word(const Value& value) {
  if (!value.is_aggregate() || value.as_items().empty() || !value.as_items()[0].is_text())
    return {};
  return value.as_items()[0].as_text();
}

/// The last two items of a message: its channel and payload.
std::vector<std::string> words_of_message(const Value& value) {
  std::vector<std::string> words;
  const auto& items = value.as_items();
  for (std::size_t i = items.size() < 2 ? 0 : items.size() - 2; i < items.size(); ++i)
    words.push_back(items[i].is_text() ? items[i].as_text() : to_string(items[i]));
  return words;
}

}  // namespace

void ProxiedLine::from_client(std::string_view bytes) {
  if (client_gone_) return;
  if (raw_) return write(requests_, bytes);
  input_ += bytes;
  using State = resp::RequestParser::State;
  State state = State::incomplete;
  while (!input_.empty() && (state = request_parser_.parse(input_)) == State::complete) {
    const auto size = request_parser_.size();
    requests_.queue.push_back(
        {.bytes = input_.substr(0, size),
         .words = {request_parser_.words().begin(), request_parser_.words().end()},
         .judged = request_parser_.words().empty()});  // an empty line: nobody answers it
    input_.erase(0, size);
  }
  pump(requests_);
  if (state == State::bad) {
    raw_ = true;
    write(requests_, input_);
  }
}

void ProxiedLine::from_server(std::string_view bytes) try {
  while (!bytes.empty()) {
    const auto before = bytes;
    auto value = reply_parser_.next(bytes);
    partial_ += before.substr(0, before.size() - bytes.size());
    if (!value) break;
    take_value(std::exchange(partial_, {}), std::move(*value));
  }
  pump(replies_);
} catch (const Error&) {  // not RESP
  cut();
}

bool ProxiedLine::is_answer(const Value& value, std::string_view word) const {
  if (value.type() == Value::Type::push || (subscriber_ && word.ends_with("message")))
    return is_subscribing(word);
  return true;
}

void ProxiedLine::take_value(std::string bytes, Value value) {
  const std::string word = lower(first_word(value));
  Packet packet{.bytes = std::move(bytes)};
  if (!is_answer(value, word)) {
    packet.kind = Passing::Kind::message;
    packet.words = words_of_message(value);
  } else {
    packet.kind = Passing::Kind::reply;
    const bool confirms = subscriber_ && is_subscribing(word);
    // UNSUBSCRIBE of all channels is confirmed for each: the others answer nothing.
    if (!asked_.empty() && (!confirms || lower(asked_.front().words.front()) == word)) {
      Asked& asked = asked_.front();
      const bool hidden = asked.hidden;
      packet.words = asked.words;
      if (--asked.replies == 0) asked_.pop_front();
      if (hidden) return;
    }
  }
  packet.value = std::move(value);
  replies_.queue.push_back(std::move(packet));
}

void ProxiedLine::pump(Lane& lane) {
  while (!lane.held && !lane.queue.empty()) {
    Packet& packet = lane.queue.front();
    Fate fate;
    if (!std::exchange(packet.judged, true) && !lane.swallowed)
      fate = judge_({packet.kind, number_, packet.words, packet.value});
    act(lane, fate);
  }
}

/// Decides over the packet in front; leaves it there to hold it.
void ProxiedLine::act(Lane& lane, const Fate& fate) {
  const auto kind = lane.queue.front().kind;
  switch (fate.fault) {
    case LineFault::cut:
      write(lane, std::string_view{lane.queue.front().bytes}.substr(0, fate.bytes));
      return cut();
    case LineFault::swallow: lane.swallowed = true; break;
    case LineFault::strand:
      if (kind == Passing::Kind::request) {
        client_gone_ = true;
        requests_.ended = true;
      }
      [[fallthrough]];
    case LineFault::hold: lane.held = true; return;
    case LineFault::twice:
      if (kind != Passing::Kind::reply) pass(lane, true);
      break;
    case LineFault::lie:
      if (kind == Passing::Kind::reply) lane.queue.front().bytes = '-' + fate.error + "\r\n";
      break;
    case LineFault::none: break;
  }
  pass(lane);
  if (!lane.queue.empty()) lane.queue.pop_front();  // empty: cut
}

void ProxiedLine::pass(Lane& lane, bool hidden) {
  if (lane.swallowed || lane.queue.empty()) return;
  const Packet& packet = lane.queue.front();
  if (packet.kind == Passing::Kind::request && !packet.words.empty()) {
    subscriber_ = subscriber_ || is_subscribing(lower(packet.words.front()));
    asked_.push_back({packet.words, replies_to(packet.words), hidden});
  }
  const std::string bytes = packet.bytes;  // a cut clears the queue
  write(lane, bytes);
}

void ProxiedLine::write(Lane& lane, std::string_view bytes) {
  if (lane.cut_at && lane.passed + bytes.size() >= *lane.cut_at) {
    lane.out += bytes.substr(0, *lane.cut_at - lane.passed);
    return cut();
  }
  lane.passed += bytes.size();
  lane.out += bytes;
}

void ProxiedLine::client_ended() {
  client_gone_ = requests_.ended = true;
  if (requests_.swallowed) requests_.queue.clear();
}

void ProxiedLine::server_ended() { replies_.ended = true; }

void ProxiedLine::let_go() {
  requests_.held = replies_.held = false;
  pump(requests_);
  pump(replies_);
}

void ProxiedLine::cut() {
  client_gone_ = true;
  for (Lane* const lane : {&requests_, &replies_}) {
    lane->queue.clear();
    lane->ended = true;
    lane->swallowed = true;
  }
}

}  // namespace sluice::test
