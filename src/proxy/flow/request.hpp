/// One request on its way: what was asked, by whom, and where it is.
///
/// Ownership: a Request belongs to its Receiver (a client, a gathering of fragments, an upstream's
/// greeting) until the receiver has its outcome; the upstream only knows in which order replies
/// will come. A receiver that goes away before its reply has come leaves the request to the
/// upstream (receiver = null), which drops the reply.
///
///     client's line:    head -> next -> next          in the order asked; replies leave in this
///     order upstream's line:  head -> behind -> behind      in the order sent; replies come in
///     this order
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

namespace sluice::proxy {

struct Request;

/// Who gets the outcome of a request: exactly one call for each request that it gave to an
/// upstream.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void replied(Request& request, std::string_view reply) = 0;
  virtual void failed(Request& request, Failure failure) = 0;
  /// So many bytes more (or, negative, less) are kept for it until its outcome is complete.
  virtual void kept_for(std::ptrdiff_t) {}
};

/// A reply that waits for its turn. Most are short and lie in the request itself.
class ParkedReply {
 public:
  void assign(std::string_view text) {
    if (text.size() <= near_.size()) {
      near_size_ = static_cast<std::uint8_t>(text.size());
      std::memcpy(near_.data(), text.data(), text.size());
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
  Receiver* receiver = nullptr;       ///< null: nobody waits for it any more
  Request* next = nullptr;            ///< in its client's line
  Request* behind = nullptr;          ///< in its upstream's line
  SteadyTime since{};                 ///< when it was given to the upstream
  std::unique_ptr<std::string> body;  ///< the bytes asked, where they may be needed again
  std::uint32_t place = 0;            ///< among the fragments of a gathering
  std::uint32_t size = 0;             ///< bytes sent
  std::uint16_t command = 0;
  Quiet quiet = Quiet::no;
  bool read_only = false;
  bool answered = false;   ///< `reply` is the outcome; it waits for its turn in the client's line
  bool abandoned = false;  ///< stands in an upstream's line for one whose time was up
  bool retried = false;
  bool last = false;  ///< its client is closed behind its reply
  std::uint8_t key_size = 0;
  std::array<char, 40>
      key;  ///< the beginning of its first key, for the logs; not initialised beyond key_size
  ParkedReply reply;
};

inline void note_key(Request& request, std::string_view key) noexcept {
  request.key_size = static_cast<std::uint8_t>(std::min(key.size(), request.key.size()));
  std::memcpy(request.key.data(), key.data(), request.key_size);
}
inline std::string_view noted_key(const Request& request) noexcept {
  return {request.key.data(), request.key_size};
}

/// A line of requests, linked through `Link`.
template <Request* Request::*Link>
class Line {
 public:
  Request* head() const noexcept { return head_; }
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

using ClientLine = Line<&Request::next>;
using UpstreamLine = Line<&Request::behind>;

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
    if (spare_)
      __builtin_prefetch(spare_, 1);  // it will be wanted soon, and has lain there for long
    return made;
  }
  void drop(Request& request) noexcept;
  /// As BlockPool::trim().
  bool trim() noexcept;

 private:
  static constexpr std::size_t kept_text =
      256;  // bytes of `reply` and `body` that are kept with a dropped request

  Request* spare_ = nullptr;
  std::size_t spare_count_ = 0;
  std::size_t fewest_spare_ = 0;
};

}  // namespace sluice::proxy
