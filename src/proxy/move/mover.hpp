/// Moves keys from the rings of one configuration to those of another, under load: tells proxies
/// the phases, fences out whoever does not know them, and goes over all keys. See
/// docs/decisions/0020-keys-move-between-rings.md.
///
/// Guarantee: no request of a client is lost or done twice, however often and wherever the mover, a
///   proxy or a server of new homes is killed; it is served, or it fails with an error. Run again
///   it goes on where it was.
/// Not guaranteed: that a server of old homes which comes back with less than it had acknowledged
///   (or its replica, after a failover) does not bring back a key that had moved.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "proxy/config/ring_move.hpp"
#include "proxy/move/guarded_server.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::move {

struct MoveOptions {
  std::string before, after;         ///< files; proxies read the second, too, by this path
  std::vector<std::string> proxies;  ///< where their administration is: all that there are
  /// How long clients may take to end what they are amid of, before it is given up.
  std::chrono::milliseconds patience{30000};
  std::size_t batch = 20;  ///< keys in one command; a server stands still for about 40 us a key
  std::function<void(std::string_view line)> tell;  ///< progress
  std::stop_token stop;  ///< it pauses: all goes on being served, and run() again goes on
};

/// What a mover that is run again has to know: a file beside the new one.
struct MoveRecord {
  MoveUser user;
  bool is_fenced = false;
  bool is_ending = false;  ///< all keys have moved, and proxies go by their files

  /// Empty: there is none.
  static std::optional<MoveRecord> read(const std::string& path);
  /// For its owner alone. Throws std::system_error.
  void write(const std::string& path) const;
};
std::string record_path(const std::string& after);

/// Threads: one.
class Mover {
 public:
  /// Reads the files. Throws Error.
  explicit Mover(MoveOptions options);
  ~Mover();

  /// False: it was stopped. Throws Error; then it may be run again.
  bool run();
  /// All is as before. Throws Error{bad_argument} when keys have moved already.
  void cancel();

 private:
  bool is_stopped() const { return options_.stop.stop_requested(); }
  void tell(const std::string& line) const;
  Value ask_proxy(const std::string& proxy, std::span<const std::string_view> words) const;
  std::string order_proxy(const std::string& proxy, std::span<const std::string_view> words) const;
  void order_proxies(std::string_view phase) const;
  bool are_drained() const;
  void make_servers();
  bool move_all();
  void hold();
  void try_to_hold();
  void look_around();
  bool go_over_all();
  bool go_over(GuardedServer& server, const config::Journey& journey);
  bool take(GuardedServer& from, int database, const config::Journey& journey,
            const std::vector<std::string>& keys);
  void take_at_once(GuardedServer& from, GuardedServer& to, int database,
                    std::span<const std::string> keys);
  void take_large(GuardedServer& from, GuardedServer& to, int database, const std::string& key);
  void note_trouble(const GuardedServer& from, std::string_view to, const std::string& trouble);
  bool wait_for_files();
  void end();
  bool rest(std::chrono::nanoseconds time);
  bool rest_since(SteadyTime begun);

  MoveOptions options_;
  Config before_, after_;
  std::string print_;
  std::string record_path_;
  MoveRecord record_;
  std::optional<MoveUser> user_before_;                            ///< of a move whose keys go back
  std::map<std::string, std::unique_ptr<GuardedServer>> servers_;  // by address
  std::vector<Descriptor> locks_;
  SteadyTime looked_{};
  std::int64_t moved_ = 0;
  std::string last_trouble_;
};

}  // namespace sluice::proxy::move
