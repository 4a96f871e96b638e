#include "loop/stream.hpp"

#include <algorithm>
#include <utility>

#include "net/socket.hpp"

namespace sluice::loop {
namespace {

using Outcome = net::Transfer::Outcome;

// A message that announces its length gets the memory at once, up to this: the peer may lie.
constexpr std::size_t largest_step = std::size_t{1} << 20;

}  // namespace

Stream::~Stream() { detach(); }

void Stream::attach(std::unique_ptr<net::Transport> transport) {
  loop_.add(transport->descriptor(), *this);
  is_unix_ = transport->short_read_drains() && net::is_unix(transport->descriptor());
  transport_ = std::move(transport);
}

void Stream::replace(std::unique_ptr<net::Transport> transport) {
  if (transport_) loop_.remove(transport_->descriptor());
  transport_.reset();
  readable_ = writable_ = hung_up_ = false;
  attach(std::move(transport));
}

void Stream::set_unread(std::string_view bytes) {
  in_.keep(bytes);
  if (!bytes.empty()) loop_.again(*this);
}

void Stream::detach() noexcept {
  ++generation_;
  if (transport_) loop_.remove(transport_->descriptor());
  transport_.reset();
  in_.release();
  out_.release();
  readable_ = writable_ = hung_up_ = paused_ = false;
}

void Stream::ready(Readiness readiness) {
  if (closed()) return;
  if (readiness.hung_up && !std::exchange(hung_up_, true)) {
    hung_up();
    if (closed()) return;
  }
  readable_ = readable_ || readiness.readable || readiness.hung_up ||
              (readiness.writable && transport_->wants_to_read().write);
  if (readiness.writable && !writable_) {
    writable_ = true;
    heed_room(false);
    writable();
    if (!closed()) flush();
  }
  if (!closed() && readable_) read();
}

/// A unix socket tells of room after each message that its peer has read: a turn for nothing,
/// unless something waits for room.
void Stream::heed_room(bool heeds) noexcept {
  if (is_unix_) loop_.tell_of_room(descriptor(), *this, heeds);
}

void Stream::resume() {
  if (closed() || !paused_) return;
  paused_ = false;
  loop_.again(*this);
}

bool Stream::take_leftovers() {
  const auto before = generation_;
  loop_.set_in_hand(&in_);
  const auto used = consume(in_.view());
  loop_.set_in_hand(nullptr);
  if (before != generation_) return false;
  if (!in_.empty()) in_.drop(used);  // empty: another stream has taken it over
  return !paused_;
}

void Stream::read() {
  if (paused_ || (!in_.empty() && !take_leftovers())) return;
  if (!loop_.blocks().has_room() && gives_way()) return;
  const auto before = generation_;
  // Little is left from before: it goes in front of what comes, and what is then left takes no more
  // memory than it needs.
  const bool in_scratch =
      in_.empty() || (in_.size() <= Loop::scratch_head && missing() <= Loop::scratch_size);
  const auto into = in_scratch ? loop_.scratch()
                               : in_.room(std::clamp(missing(), BlockPool::block, largest_step));
  const auto got = transport_->read_some(into);
  switch (got.outcome) {
    case Outcome::would_block: readable_ = false; return;
    case Outcome::closed: return ended(0);
    case Outcome::failed: return ended(got.error);
    case Outcome::moved: break;
  }
  if (in_scratch) {
    const auto left = in_.size();
    char* const front = into.data() - left;
    if (left != 0) {
      std::ranges::copy(in_.view(), front);
      in_.release();
    }
    const std::string_view bytes{front, left + got.bytes};
    const auto used = consume(bytes);
    if (before != generation_) return;
    if (used != bytes.size()) in_.keep(bytes.substr(used));
  } else {
    in_.added(got.bytes);
    if (!take_leftovers() && before != generation_) return;
  }
  // A short read has emptied a plain socket: what comes later is a new event. TLS, and a peer that
  // has hung up, are read again until nothing is left, once a turn so that all connections have
  // theirs.
  if (got.bytes < into.size() && transport_->short_read_drains() && !hung_up_)
    readable_ = false;
  else
    loop_.again(*this);
}

void Stream::flush() {
  while (writable_ && !out_.empty()) {
    const auto sent = transport_->write_some(out_.view());
    switch (sent.outcome) {
      case Outcome::moved: out_.drop(sent.bytes); break;
      case Outcome::would_block:
        writable_ = false;
        heed_room(true);
        break;
      case Outcome::closed: return ended(0);
      case Outcome::failed:
        if (!sent.is_refused() || paused_ || !heeds_last_words()) return ended(sent.error);
        writable_ = false;
        readable_ = true;  // to the end, which is behind those words
        return loop_.again(*this);
    }
  }
  if (!closed() && out_.empty()) flushed();
}

}  // namespace sluice::loop
