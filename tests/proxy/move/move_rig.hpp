/// Three servers, of which the old files have two and the new ones all; proxies as programs, each
/// with a file of its own; and the program that moves the keys.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/ring_move.hpp"
#include "support/certificates.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class MoveRig {
 public:
  static constexpr std::size_t servers = 3;

  explicit MoveRig(std::size_t proxies = 1, std::vector<std::string> server_lines = {},
                   std::vector<std::string> pool_lines = {});
  /// Proxies and servers speak TLS with servers. `lines`: further ones of each server.
  MoveRig(const Certificates& certificates, const std::vector<std::string>& lines);

  RedisServer& server(std::size_t number) { return *servers_[number]; }
  std::size_t proxies() const noexcept { return proxies_.size(); }
  std::uint16_t port(std::size_t proxy) const { return proxies_[proxy].port; }
  Process& proxy(std::size_t number) { return *proxies_[number].process; }
  /// At the same port, with the file that lies there now.
  void start_proxy(std::size_t number);
  void kill_proxy(std::size_t number) { proxy(number).kill(); }
  /// The reply of its administration.
  std::string tell_proxy(std::size_t number, std::vector<std::string> words);

  std::string old_file() const { return directory_ / "old.yml"; }
  std::string new_file() const { return directory_ / "new.yml"; }
  std::string text_of_log(std::size_t proxy) const;
  /// Every proxy has this ring in its file from now on.
  void place_files(bool is_new);
  /// `sluice proxy move`, in the one direction or back.
  Process start_mover(bool back = false, std::vector<std::string> options = {},
                      std::size_t known_proxies = SIZE_MAX);
  std::string told() const;  ///< by all movers
  void forget_told() const;
  /// Moves all, to the end.
  void move_all(bool back = false);
  /// A mover has said this.
  bool comes_to_tell(std::string_view text) const;

  /// Names of keys that lie where neither ring, or not the new one, has them.
  std::vector<std::string> misplaced(bool is_new = true);
  /// "PREFIX0" ...: the first that goes from one server to another.
  std::string moving_key(std::string_view prefix = "key", std::size_t which = 0) const;
  /// As a user of its own, whom no fence concerns.
  PlainClient direct(std::size_t server);
  std::size_t home(std::string_view key, bool is_new) const;

 private:
  struct Proxy {
    std::uint16_t port = 0;
    std::optional<Process> process;
  };

  void start(std::size_t proxies);
  std::string name(std::size_t proxy, std::string_view what) const;
  std::string text(bool is_new, const std::string& head, std::uint16_t port) const;

  TempDir directory_;
  std::vector<std::string> pool_lines_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::uint16_t> ports_;  // where the pool asks for them
  std::vector<Proxy> proxies_;
  proxy::Homes homes_[2];
};

}  // namespace sluice::test
