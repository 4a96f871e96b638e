/// A node of a cluster that says what a test tells it to; of itself that it has all slots.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "redis/cluster_store.hpp"
#include "redis/fake_server.hpp"

namespace sluice::test {

class FakeNode {
 public:
  using Words = std::vector<std::string>;
  /// The reply to a command that is about no cluster.
  using Answer = std::function<std::string(const Words&)>;

  /// `tells`: the nodes, as in CLUSTER NODES, if it is not alone.
  explicit FakeNode(Answer answer, std::string tells = {})
      : answer_(std::move(answer)),
        tells_(std::move(tells)),
        server_([this](FakeServer::Peer& peer, int) { serve(peer); }, FakeServer::Serves::at_once) {
  }

  ~FakeNode() { go_on(); }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  /// Stands still: takes what is sent, and answers nothing until go_on().
  void stop() { stopped_ = true; }
  void go_on() {
    stopped_ = false;
    stopped_.notify_all();
  }

  /// As `tells`, from now on.
  void tell(std::string nodes) {
    const std::lock_guard lock{mutex_};
    tells_ = std::move(nodes);
  }
  std::uint16_t port() const noexcept { return server_.port(); }
  int calls() const noexcept { return calls_; }
  int connections() const noexcept { return connections_; }
  redis::ClusterStoreOptions options() const {
    redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
    options.node.connect_timeout = options.node.command_timeout = std::chrono::seconds{30};
    options.node.backoff_min = std::chrono::milliseconds{2};
    options.node.backoff_max = std::chrono::milliseconds{50};
    options.seeds.push_back({.host = "127.0.0.1", .port = port(), .unix_path = {}});
    return options;
  }
  /// Of CLUSTER NODES. `id`: what its id consists of. `is_asked`: it tells this itself.
  std::string line(char id, bool is_asked, int epoch, const std::string& slots) const {
    return std::string(40, id) + " 127.0.0.1:" + std::to_string(port()) + "@1 " +
           (is_asked ? "myself," : "") + "master - 0 0 " + std::to_string(epoch) + " connected " +
           slots + "\n";
  }
  std::string moved_to(const FakeNode& other) const {
    return "-MOVED 1 127.0.0.1:" + std::to_string(other.port()) + "\r\n";
  }

 private:
  void serve(FakeServer::Peer& peer) {
    ++connections_;
    for (auto words = peer.command(); !words.empty(); words = peer.command()) {
      stopped_.wait(true);
      if (words[0] == "HELLO") {
        peer.send("%3\r\n+proto\r\n:3\r\n+mode\r\n+cluster\r\n+version\r\n+7.0.15\r\n");
      } else if (words[0] == "WAIT" && words[1] == "0") {
        peer.send(":0\r\n");  // a greeting asks whether it may
      } else if (words[0] == "PING") {
        peer.send("+PONG\r\n");
      } else if (words[0] == "CLUSTER" && words[1] == "INFO") {
        send(peer, "cluster_state:ok\r\ncluster_current_epoch:1\r\n");
      } else if (words[0] == "CLUSTER" && words[1] == "NODES") {
        const std::lock_guard lock{mutex_};
        send(peer, tells_.empty() ? line('0', true, 1, "0-16383") : tells_);
      } else if (words[0] == "CLUSTER") {
        peer.send("-ERR unknown subcommand\r\n");
      } else {
        ++calls_;
        peer.send(answer_(words));
      }
    }
  }
  static void send(FakeServer::Peer& peer, const std::string& text) {
    peer.send("$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
  }

  const Answer answer_;
  std::mutex mutex_;
  std::string tells_;
  std::atomic<int> calls_{0};
  std::atomic<int> connections_{0};
  std::atomic<bool> stopped_{false};
  FakeServer server_;
};

}  // namespace sluice::test
