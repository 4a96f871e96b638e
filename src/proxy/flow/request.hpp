/// One request on its way: what was asked, by which client, and where it is.
///
/// Ownership: a Request belongs to its Receiver (a client, a gathering of fragments, an upstream's
/// handshake) until the receiver has its outcome; the upstream only knows in which order replies
/// will come. A receiver that goes away before its reply has come leaves the request to the
/// upstream (receiver = null), which drops the reply.
///
///     client's queue:    head -> next -> next        in the order asked; replies leave in it
///     upstream's queue:  head -> behind -> behind    in the order sent; replies come in it
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/protocol/protocol.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::flow {

struct Request;

/// Gets the outcome of a request: one call for each request that it gave to an upstream.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void replied(Request& request, std::string_view reply) = 0;
  virtual void failed(Request& request, Failure failure) = 0;
  /// So many bytes more (or, negative, less) are kept for it until its outcome is complete.
  virtual void kept_for(std::ptrdiff_t) {}
  /// It goes on to another server, or later: what its client asks next is to come behind it. Gives
  /// the client's id; 0: there is none.
  virtual std::uint64_t detoured() { return 0; }
  /// Where the client is that has asked, for logs. Empty: the proxy has.
  virtual std::string peer() const { return {}; }
};

/// A reply that waits for its turn. Most are short and lie in the request itself.
class ParkedReply {
 public:
  void assign(std::string_view text) {
    if (text.size() <= near_.size()) {
      near_size_ = static_cast<std::uint8_t>(text.size());
      std::ranges::copy(text, near_.begin());  // which may have no bytes, and then no address
    } else {
      far_ = std::make_unique<std::string>(text);
    }
  }
  std::string_view view() const noexcept {
    return far_ ? std::string_view{*far_} : std::string_view{near_.data(), near_size_};
  }
  /// Bytes outside of the request.
  std::size_t memory() const noexcept { return far_ ? far_->size() : 0; }
  void clear() noexcept { far_.reset(); }

 private:
  std::unique_ptr<std::string> far_;
  std::uint8_t near_size_ = 0;
  std::array<char, 55> near_;  // what is not there is not initialised
};

/// Laid out by cache lines: what every request needs, its key for the logs, a reply that has to
/// wait.
struct alignas(64) Request {
  Receiver* receiver = nullptr;       ///< null: no receiver waits for it any more
  Request* next = nullptr;            ///< in its client's queue
  Request* behind = nullptr;          ///< in its upstream's queue
  SteadyTime since{};                 ///< when it was given to the upstream
  std::unique_ptr<std::string> body;  ///< the bytes asked, where they may be needed again
  std::uint32_t place = 0;            ///< among the fragments of a gathering
  std::uint32_t size = 0;             ///< bytes sent
  std::uint32_t expected = 0;         ///< bytes that its reply is taken to be
  std::uint16_t command = 0;
  Quiet quiet = Quiet::no;
  bool read_only = false;
  bool answered = false;   ///< `reply` is the outcome; it waits for its turn in the client's queue
  bool abandoned = false;  ///< takes the place of a request that has timed out: drop its reply
  bool retried = false;
  bool last = false;        ///< its client is closed behind its reply
  bool mirrored = false;    ///< a mirror compares its reply
  bool detours = false;     ///< what a server refuses without having done it goes on; see Detours
  bool kept = false;        ///< its upstream keeps its bytes
  bool at_replica = false;  ///< what that does not answer well the master is asked
  std::uint8_t hops = 0, pauses = 0;  ///< of its detour
  std::uint8_t key_size = 0;
  std::array<char, 40> key;  ///< the beginning of its first key, for logs; see note_key()
  ParkedReply reply;
  std::uint64_t mirror = 0;  ///< its number there
};

inline void note_key(Request& request, std::string_view key) noexcept {
  request.key_size = static_cast<std::uint8_t>(std::min(key.size(), request.key.size()));
  if (!key.empty()) std::memcpy(request.key.data(), key.data(), request.key_size);
}
inline std::string_view noted_key(const Request& request) noexcept {
  return {request.key.data(), request.key_size};
}

/// Requests in order, linked through `Link`.
template <Request* Request::*Link>
class RequestQueue {
 public:
  Request* head() const noexcept { return head_; }
  Request* tail() const noexcept { return head_ ? tail_ : nullptr; }
  bool empty() const noexcept { return head_ == nullptr; }
  std::size_t size() const noexcept { return size_; }

  void push(Request& request) noexcept {
    request.*Link = nullptr;
    (head_ ? tail_->*Link : head_) = &request;
    tail_ = &request;
    ++size_;
  }
  /// `other` takes the place of `request`, which stands behind `before` (null: it is the head).
  void replace(Request* before, Request& request, Request& other) noexcept {
    other.*Link = request.*Link;
    (before ? before->*Link : head_) = &other;
    if (tail_ == &request) tail_ = &other;
  }
  /// REQUIRES: !empty().
  Request& pop() noexcept {
    --size_;
    Request& first = *std::exchange(head_, head_->*Link);
    if (head_) __builtin_prefetch(head_, 1);
    return first;
  }

 private:
  Request* head_ = nullptr;
  Request* tail_ = nullptr;
  std::size_t size_ = 0;
};

using ClientQueue = RequestQueue<&Request::next>;
using UpstreamQueue = RequestQueue<&Request::behind>;

/// Requests are made and dropped a million times a second: dropped ones are kept, in moderation.
class RequestPool {
 public:
  RequestPool() = default;
  ~RequestPool();
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;

  Request& make() {
    if (!spare_) return *new Request;
    --spare_count_;
    if (spare_count_ < fewest_spare_) fewest_spare_ = spare_count_;
    Request& made = *std::exchange(spare_, spare_->next);
    if (spare_) __builtin_prefetch(spare_, 1);  // the next make() takes it, out of the cache by now
    return made;
  }
  void drop(Request& request) noexcept;
  /// As loop::BlockPool::trim().
  bool trim() noexcept;

 private:
  Request* spare_ = nullptr;
  std::size_t spare_count_ = 0;
  std::size_t fewest_spare_ = 0;
};

// When a request may be asked again without its client's knowledge.
//
// A client must not see its requests done in another order than it asked them. Asked again, a
// request is done after those behind it, which may have been done before the connection broke. So a
// read is asked again only while no write of the same client stands behind it, and what may be a
// write only while nothing does. What the client asks later goes over the same new connection,
// behind it.

enum class Behind : std::uint8_t { writes, anything };

/// Whether a later request of the client that has no outcome yet is such. O(1): with more than 256
/// behind it the answer is true.
bool has_behind(const Request& request, Behind what) noexcept;

/// Whether `asked` is a read that is lost with its connection and may be asked once more. `whole`
/// stands for it in its client's queue: itself, or the request that it is a fragment of. A read
/// that timed out is not asked again: the server has work enough.
bool may_ask_again(const Request& asked, const Request& whole, Failure failure) noexcept;

}  // namespace sluice::proxy::flow
