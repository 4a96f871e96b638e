/// A question to the name service, asked in a thread of its own: the service may take its time, and
/// the connection's thread has the deadlines of all callers to keep.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/endpoint.hpp"
#include "sluice/error.hpp"
#include "sluice/expected.hpp"

namespace sluice::redis {

/// Threads: any. The thread goes on when nobody wants the answer any more.
class Resolution {
 public:
  using Answer = Expected<std::vector<net::Address>, Error>;

  /// `done` is called in that thread, once, when the answer is there. Throws std::system_error
  /// where no thread can be made.
  static std::shared_ptr<Resolution> start(net::Endpoint endpoint, std::function<void()> done);

  /// Nothing: it is not there yet.
  std::optional<Answer> answer() const {
    const std::lock_guard lock{mutex_};
    return answer_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Answer> answer_;
};

}  // namespace sluice::redis
