/// A proxy before real servers, for the table of sessions and events: what a cell of it asks of
/// either side, in whatever way the proxy runs.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "proxy/ring/ring.hpp"
#include "proxy/support/asking.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {

/// The users of all pools: `app` has sessions, `root` looks from the side, `narrow` may do little.
inline const std::vector<std::string> table_users{
    "users:", " - {name: root, password: r}", " - {name: other, password: o, read_only: true}",
    " - {name: narrow, password: n, acl: \"+@all ~allowed:* &allowed:*\"}"};
inline const std::string app_user = " - {name: app, password: a}";

inline std::vector<std::string> with_app(std::vector<std::string> more = {},
                                         const std::string& app = app_user) {
  more.insert(more.end(), table_users.begin(), table_users.end());
  if (!app.empty()) more.push_back(app);
  return more;
}

class Stage {
 public:
  virtual ~Stage() = default;

  virtual std::uint16_t port() const = 0;
  /// Of the pool, as they are now.
  virtual proxy::PoolSettings settings() const = 0;
  /// Ports of the servers that live.
  virtual std::vector<std::uint16_t> servers() const = 0;
  /// To one of them, past the proxy.
  virtual PlainClient direct(std::uint16_t server) const { return PlainClient{server}; }
  virtual std::string answer(PlainClient& client) {
    return said([&] { return client.read(); });
  }
  /// Beside its home of now: where else a key may be at home (it moves).
  virtual std::vector<std::uint16_t> other_homes() const { return {}; }

  std::string ask(PlainClient& client, const std::string& line) {
    try {
      client.send(request(line));
    } catch (const std::system_error&) {
      return "closed";
    }
    return answer(client);
  }
  PlainClient client(const std::string& login) {
    PlainClient client{port()};
    EXPECT_EQ(ask(client, "AUTH " + login), "+OK");
    return client;
  }
  /// The servers that have keys by the settings of now.
  virtual std::vector<std::uint16_t> ring() const {
    std::vector<std::uint16_t> ports;
    for (const auto& server : settings().servers) ports.push_back(server.endpoint.port);
    return ports;
  }
  virtual std::uint16_t home_of(std::string_view key) const {
    const auto now = settings();
    return now.servers[proxy::make_homes(now).of(key)].endpoint.port;
  }
  /// "PREFIX0" ...: the first key whose home is the server number `home`.
  virtual std::string key_at(std::size_t home, std::string_view prefix) const {
    const auto homes = proxy::make_homes(settings());
    for (int i = 0;; ++i)
      if (auto key = fmt::format("{}{}", prefix, i); homes.of(key) == home % count()) return key;
  }
  virtual std::vector<int> databases() const { return {0, 1, 3}; }
  /// Of the keys that the server has from the beginning, in front of their numbers.
  virtual std::string fill_prefix(std::uint16_t server) const {
    return fmt::format("fill:{}:", server);
  }
  std::size_t count() const { return settings().servers.size(); }
  /// "PORT/DATABASE=VALUE" of all servers that have the key.
  std::vector<std::string> found(const std::string& key) const {
    std::vector<std::string> all;
    for (const auto server : servers()) {
      auto client = direct(server);
      for (const int db : databases()) {
        static_cast<void>(test::ask(client, fmt::format("SELECT {}", db)));
        if (const auto value = client.command({"GET", key}); value.is_text() && !value.is_error())
          all.push_back(fmt::format("{}/{}={}", server, db, value.as_text()));
      }
    }
    return all;
  }

 protected:
  template <class Read>
  static std::string said(Read read) try {
    return text_of(read());
  } catch (const std::system_error& error) {
    return error.code() == std::errc::timed_out ? "nothing" : "closed";
  }
};

/// All that servers are asked, from its beginning on.
class Monitors {
 public:
  explicit Monitors(const Stage& stage) : stage_(stage), ports_(stage.servers()) {
    for (const auto port : ports_) {
      clients_.push_back(stage.direct(port));
      EXPECT_EQ(test::ask(clients_.back(), "MONITOR"), "+OK");
    }
  }
  /// Lines with this text that servers which live have seen.
  std::vector<std::string> seen(std::string_view text) {
    std::vector<std::string> lines;
    const auto living = stage_.servers();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (std::ranges::find(living, ports_[i]) == living.end()) continue;
      auto client = stage_.direct(ports_[i]);
      static_cast<void>(test::ask(client, "ECHO the_end_of_it"));
      for (;;) {
        const auto line = clients_[i].read().as_text();
        if (line.contains("the_end_of_it")) break;
        if (line.contains(text)) lines.push_back(line);
      }
    }
    return lines;
  }

 private:
  const Stage& stage_;
  std::vector<std::uint16_t> ports_;
  std::vector<PlainClient> clients_;
};

}  // namespace sluice::test
