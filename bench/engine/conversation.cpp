#include "engine/conversation.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <cstring>
#include <stdexcept>

#include "port/wire_reply.hpp"
#include "resp/command_table.hpp"

namespace sluice::bench {

using Outcome = net::Transfer::Outcome;

void Conversation::read() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ != 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto got = socket_.read_some({in_.data() + end_, in_.size() - end_});
  ended_ = got.outcome == Outcome::closed || got.outcome == Outcome::failed;
  if (got.outcome != Outcome::moved) return;
  end_ += got.bytes;
  if (end_ == in_.size()) throw std::runtime_error{"a benchmark's client sends too much at once"};
  parse();
}

void Conversation::parse() {
  const auto state = parser_.parse({in_.data() + begin_, end_ - begin_});
  ended_ = ended_ || state == resp::RequestParser::State::bad;
  has_request_ = state == resp::RequestParser::State::complete;
}

void Conversation::execute(engine::LockedEngine::Section& section) {
  do {
    const auto words = parser_.words();
    port::WireReply reply{out_, session_};
    section.execute(session_, words, resp::find_command(words), reply);
    begin_ += parser_.size();
    has_request_ = false;
    if (begin_ != end_) parse();
  } while (has_request_);
}

void Conversation::write() {
  std::string_view left = out_;
  while (!left.empty()) {
    const auto sent = socket_.write_some(left);
    if (sent.outcome == Outcome::moved) {
      left.remove_prefix(sent.bytes);
    } else if (sent.outcome == Outcome::would_block) {
      pollfd wanted{.fd = descriptor(), .events = POLLOUT, .revents = 0};
      ::poll(&wanted, 1, -1);
    } else {
      ended_ = true;
      break;
    }
  }
  out_.clear();
}

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1") {}

void Poller::add(std::unique_ptr<Conversation> conversation) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = conversation.get()}};
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, conversation->descriptor(), &event) == 0)
    static_cast<void>(conversation.release());
}

void Poller::add(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event);
}

const std::vector<Conversation*>& Poller::wait() {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(epoll_.number(), events.data(), events.size(), -1);
  ready_.clear();
  for (int i = 0; i < count; ++i)
    ready_.push_back(static_cast<Conversation*>(events[static_cast<std::size_t>(i)].data.ptr));
  return ready_;
}

}  // namespace sluice::bench
