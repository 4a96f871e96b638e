/// nutcracker and our proxy in strict mode beside each other, each with servers of its own, asked
/// the same.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "proxy/config/read.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {

/// Requests that are sent in one go, and which of them are answered.
struct Batch {
  std::string bytes;
  std::vector<std::string> answered;

  void add(const std::string& request, bool has_reply) {
    bytes += request;
    if (has_reply) answered.push_back(request);
  }
};

inline std::string shown(std::string_view bytes) {
  constexpr std::size_t most = 300;
  return fmt::format("{:?} ({} bytes)", bytes.substr(0, most), bytes.size());
}

template <class Server>
class TwoSides {
 public:
  /// `lines` of the pool; the servers are added: s1, s2 …
  TwoSides(std::size_t servers, std::vector<std::string> lines) {
    for (auto* side : {&theirs_, &ours_})
      for (std::size_t i = 0; i < servers; ++i) side->servers.push_back(std::make_unique<Server>());
    nutcracker_.emplace(with_servers(lines, theirs_));
    auto strict = lines;
    strict.emplace_back("compat: strict");
    proxy_.emplace(PoolLines{with_servers(strict, ours_)});
    theirs_.port = nutcracker_->port();
    ours_.port = proxy_->port();
    settings_ = proxy_->proxy().config().pools.at(0);
    protocol_ = settings_.redis ? proxy::make_redis_protocol(settings_)
                                : proxy::make_memcached_protocol(settings_);
    homes_ = proxy::make_homes(settings_);
  }

  /// A key of that server.
  std::string key_of(std::size_t server) const {
    for (int i = 0;; ++i)
      if (auto key = fmt::format("of:{}:{}", server, i); homes_.of(key) == server) return key;
  }

  /// Both sides get it; each reply must be the same. Both end the connection behind a failure that
  /// stands for several values; what nutcracker has said in the same turn behind it does not count.
  void compare(const Batch& batch) {
    auto theirs = answers(theirs_, batch), ours = answers(ours_, batch);
    if (find_late(theirs, ours)) return;
    for (std::size_t i = 0; i < std::min(theirs.replies.size(), ours.replies.size()); ++i) {
      ASSERT_TRUE(theirs.replies[i] == ours.replies[i])
          << "request " << i << ": " << shown(batch.answered[i]) << "\n theirs "
          << shown(theirs.replies[i]) << "\n ours   " << shown(ours.replies[i]);
      if (!is_last(batch.answered[i], ours.replies[i])) continue;
      ASSERT_EQ(ours.replies.size(), i + 1);
      for (auto* side : {&theirs_, &ours_}) await_end(*side);
      return;
    }
    ASSERT_EQ(theirs.replies.size(), ours.replies.size());
    ASSERT_FALSE(theirs.closed || ours.closed)
        << "closed after " << ours.replies.size() << " of " << batch.answered.size();
  }
  /// Both close, with the same last words.
  void compare_ending(const Batch& batch) {
    const auto theirs = answers(theirs_, batch), ours = answers(ours_, batch);
    if (find_late(theirs, ours)) return;
    ASSERT_EQ(theirs.closed, ours.closed) << shown(batch.bytes);
    ASSERT_EQ(theirs.replies, ours.replies) << shown(batch.bytes);
    ASSERT_TRUE(theirs.closed) << shown(batch.bytes);
    for (auto* side : {&theirs_, &ours_}) side->client.reset();
  }

  /// What ours says to these bytes on a connection of their own until it closes it.
  std::string all_said_by_ours(std::string_view bytes) const {
    return all_said(ours_.port, bytes, [](const std::string&) { return patience; });
  }
  /// The same of theirs. At times it leaves open what its client has closed amid a request, so that
  /// what it says beyond `ours` is awaited for a moment alone.
  std::string all_said_by_theirs(std::string_view bytes, std::string_view ours) const {
    return all_said(theirs_.port, bytes, [ours](const std::string& said) {
      return said.size() < ours.size() ? patience : std::chrono::milliseconds{100};
    });
  }

  /// The last comparison says nothing: another request has timed out on one side than on the other.
  bool was_late() const noexcept { return was_late_; }

  void kill(std::size_t server) { both(server, &Server::kill); }
  void start(std::size_t server) { both(server, &Server::start); }
  void stop(std::size_t server) {
    both(server, &Server::stop);
    stopped_ = server;
  }
  void cont(std::size_t server) {
    both(server, &Server::cont);
    stopped_.reset();
  }

  /// Asks each side until it answers so: until it has noticed what has become of the server.
  void await_reply(const std::string& request, std::string_view reply) {
    constexpr int times = 2000;
    for (auto* side : {&theirs_, &ours_}) {
      std::string last;
      for (int left = times; left > 0 && last != reply; --left) {
        const auto said = answers(*side, {request, {request}});
        last = said.replies.empty() ? "closed" : said.replies[0];
        if (last != reply) std::this_thread::sleep_for(std::chrono::milliseconds{5});
      }
      ASSERT_EQ(last, reply) << (side == &theirs_ ? "theirs" : "ours");
    }
  }
  /// Each server that is not stopped is told directly.
  void empty() {
    const std::string_view request = settings_.redis ? "FLUSHALL\r\n" : "flush_all\r\n",
                           reply = settings_.redis ? "+OK\r\n" : "OK\r\n";
    for (auto* side : {&theirs_, &ours_}) {
      for (std::size_t server = 0; server < side->servers.size(); ++server) {
        if (server == stopped_) continue;
        ASSERT_EQ(talk(side->servers[server]->port(), request, reply).bytes, reply);
      }
    }
  }

 private:
  struct Side {
    std::vector<std::unique_ptr<Server>> servers;
    std::uint16_t port = 0;
    std::optional<PlainClient> client;
  };
  struct Answers {
    std::vector<std::string> replies;
    bool closed = false;
  };

  static std::vector<std::string> with_servers(std::vector<std::string> lines, const Side& side) {
    lines.emplace_back("servers:");
    for (std::size_t i = 0; i < side.servers.size(); ++i)
      lines.push_back(fmt::format(" - 127.0.0.1:{}:1 s{}", side.servers[i]->port(), i + 1));
    return lines;
  }

  static constexpr std::chrono::milliseconds patience{20'000};

  template <class PatienceAfter>
  static std::string all_said(std::uint16_t port, std::string_view bytes, PatienceAfter after) {
    PlainClient client{port};
    std::string all;
    try {
      client.send(bytes);
      client.finish_sending();
      for (;;) {
        client.patience = after(all);
        const auto more = client.read_raw();
        if (more.empty()) return all;
        all += more;
      }
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::timed_out)
        return client.patience == patience ? all + " and then nothing" : all;
      if (error.code() != std::errc::connection_reset && error.code() != std::errc::broken_pipe)
        throw;
    }
    return all;
  }

  Answers answers(Side& side, const Batch& batch) {
    if (!side.client) side.client.emplace(side.port);
    Answers answers;
    const auto reader = protocol_->reply_reader();
    std::string input;
    try {
      side.client->send(batch.bytes);
      while (answers.replies.size() < batch.answered.size()) {
        const auto more = side.client->read_raw();
        if (more.empty()) {
          answers.closed = true;
          break;
        }
        input += more;
        using State = proxy::ReplyReader::State;
        std::size_t at = 0;
        for (auto state = State::complete; at < input.size();) {
          state = reader->read(std::string_view{input}.substr(at));
          if (state == State::bad) throw std::runtime_error{"no reply: " + shown(input.substr(at))};
          if (state == State::incomplete) break;
          answers.replies.push_back(input.substr(at, reader->size()));
          at += reader->size();
        }
        input.erase(0, at);
      }
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::connection_reset && error.code() != std::errc::broken_pipe)
        throw;
      answers.closed = true;
    }
    if (answers.closed) side.client.reset();
    return answers;
  }

  /// Whether the first replies that differ differ by that.
  bool find_late(const Answers& theirs, const Answers& ours) {
    const auto is_late = [](const std::string& reply) {
      return reply.ends_with("Connection timed out\r\n");
    };
    const auto [their, our] = std::ranges::mismatch(theirs.replies, ours.replies);
    was_late_ = their != theirs.replies.end() && our != ours.replies.end() &&
                is_late(*their) != is_late(*our);
    if (was_late_)
      for (auto* side : {&theirs_, &ours_}) side->client.reset();
    return was_late_;
  }

  /// A read of several values whose whole answer is a failure: no server answers it so.
  bool is_last(const std::string& request, std::string_view reply) const {
    if (!reply.starts_with('-') && !reply.starts_with("SERVER_ERROR")) return false;
    const auto reader = protocol_->request_reader();
    if (reader->read(request) != proxy::RequestReader::State::complete) return false;
    const auto plan = protocol_->plan(reader->words());
    return plan.route == proxy::Route::homes && plan.merge == proxy::Merge::by_key;
  }

  static void await_end(Side& side) {
    if (!side.client) return;
    try {
      while (!side.client->read_raw().empty()) {
      }
    } catch (const std::system_error& error) {
      ASSERT_EQ(error.code(), std::errc::connection_reset);
    }
    side.client.reset();
  }

  template <class Deed>
  void both(std::size_t server, Deed deed) {
    for (auto* side : {&theirs_, &ours_}) (*side->servers[server].*deed)();
  }

  Side theirs_, ours_;
  std::optional<std::size_t> stopped_;
  bool was_late_ = false;
  std::optional<Nutcracker> nutcracker_;
  std::optional<ProxyUnderTest> proxy_;
  proxy::PoolSettings settings_;
  std::unique_ptr<proxy::Protocol> protocol_;
  proxy::Homes homes_;
};

}  // namespace sluice::test
