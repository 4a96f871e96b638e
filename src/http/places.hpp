/// How many connections there are, of all clients and of each. Threads: any, once limit() was
/// called.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace sluice::http {

class Places {
 public:
  enum class Outcome { entered, full, too_many_of_a_client };

  void limit(std::size_t most, std::size_t most_of_a_client) noexcept {
    most_ = most;
    most_of_a_client_ = most_of_a_client;
  }

  /// `client`: its network; empty: only all of them together count.
  Outcome enter(const std::string& client) {
    const std::lock_guard lock{mutex_};
    if (here_ >= most_) return Outcome::full;
    if (!client.empty()) {
      auto& of_client = of_clients_[client];
      if (of_client >= most_of_a_client_) return Outcome::too_many_of_a_client;
      ++of_client;
    }
    ++here_;
    return Outcome::entered;
  }
  void leave(const std::string& client) noexcept {
    const std::lock_guard lock{mutex_};
    --here_;
    const auto found = of_clients_.find(client);
    if (found != of_clients_.end() && --found->second == 0) of_clients_.erase(found);
  }

 private:
  std::size_t most_ = 0;
  std::size_t most_of_a_client_ = 0;
  std::mutex mutex_;
  std::size_t here_ = 0;
  std::unordered_map<std::string, std::size_t> of_clients_;
};

}  // namespace sluice::http
