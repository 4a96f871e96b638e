/// The engine at a port: threads with connections, in front of one engine.
///
/// Guarantee: the commands of a connection take effect in their order, each at one moment between
///   its request and its reply, under the engine's lock, whichever thread the connection has. A
///   reply is sent when the log has what it may have seen, as Fsync says; a connection whose reply
///   cannot be kept so is closed without it.
/// Threads: those of its own. Port's functions may be called by any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/embedded/opened_engine.hpp"
#include "front/login_throttle.hpp"
#include "front/place_limit.hpp"
#include "net/endpoint.hpp"
#include "net/server_socket.hpp"
#include "net/tls.hpp"
#include "port/audience.hpp"

namespace sluice::port {

class Connection;
class PortThread;

/// Where clients come in.
struct Listen {
  net::Endpoint endpoint;
  bool tls = false;
};

/// How much a client may leave unread; 0: no limit.
struct OutputLimit {
  std::size_t hard = 0;  ///< bytes at which it is closed at once
  std::size_t soft = 0;  ///< bytes beyond which it may be for so long
  std::chrono::seconds patience{0};
};

struct PortSettings {
  std::vector<Listen> listen;
  net::TlsFiles tls;                 ///< of those that say so
  bool asks_for_certificate = true;  ///< of clients, where `tls` names who is trusted
  unsigned unix_permissions = 0700;
  /// Of the user "default"; empty: none is asked for.
  std::string password;
  std::vector<std::string> users;     ///< lines, as Users takes them
  std::uint32_t notified_events = 0;  ///< as engine::EventKind says
  std::size_t threads = 1;
  std::size_t most_clients = 10'000;
  OutputLimit of_clients;
  OutputLimit of_listeners{.hard = std::size_t{32} << 20,
                           .soft = std::size_t{8} << 20,
                           .patience = std::chrono::seconds{60}};
  std::size_t longest_word = std::size_t{512} << 20;  ///< bytes
  /// A connection that asks nothing for so long is closed; 0: none.
  std::chrono::seconds idle_timeout{0};
  /// Where no password is asked for, clients from other machines are refused, though the port is
  /// open to them.
  bool is_protected = true;
};

class Port {
 public:
  /// Listens, and serves from now on. Throws Error, std::system_error (an address is in use).
  Port(engine::OpenedEngine& opened, PortSettings settings);
  ~Port();

  /// Blocks until a client says SHUTDOWN, or stop() is called.
  void wait();
  /// Any thread.
  void stop() noexcept;

  /// Where it listens; a port that was given as 0 is the one that the kernel chose.
  const std::vector<Listen>& listens_at() const noexcept { return settings_.listen; }
  struct Figures {
    std::size_t keys = 0;
    std::uint64_t commands = 0;
    std::size_t clients = 0;
    bool has_failed = false;  ///< the log takes no writes
  };
  Figures figures();

  // For its threads and connections:

  engine::OpenedEngine& opened() noexcept { return opened_; }
  engine::LockedEngine& engine() noexcept { return opened_.engine(); }
  const PortSettings& settings() const noexcept { return settings_; }
  /// Null: no client comes in so.
  const net::TlsContext* tls() const noexcept { return tls_ ? &*tls_ : nullptr; }
  Clock& clock() noexcept { return opened_.engine().clock(); }
  std::uint64_t next_id() noexcept { return ++last_id_; }
  PortThread& next_thread() noexcept { return *threads_[++dealt_ % threads_.size()]; }

  front::PlaceLimit& places() noexcept { return places_; }
  front::StrangerBudget& strangers() noexcept { return strangers_; }
  front::LoginThrottle& logins() noexcept { return logins_; }

  // Under the engine's lock:

  Audience& audience() noexcept { return audience_; }
  std::map<std::uint64_t, Connection*>& connections() noexcept { return connections_; }

  // Any thread:

  /// Commands of clients wait until then, or those that write.
  void pause_clients(SteadyTime until, bool writes_alone);
  bool is_paused(SteadyTime now) const noexcept { return paused_until_.load() > now; }
  bool pauses_writes_alone() const noexcept { return pauses_writes_alone_; }

 private:
  net::TlsFiles tls_files() const;
  void tell_info();

  engine::OpenedEngine& opened_;
  PortSettings settings_;
  Audience audience_{opened_.engine()};
  std::map<std::uint64_t, Connection*> connections_;
  std::atomic<SteadyTime> paused_until_{SteadyTime::min()};
  std::atomic<bool> pauses_writes_alone_{false};
  std::atomic<std::uint64_t> last_id_{0};
  std::atomic<std::size_t> dealt_{0};
  front::PlaceLimit places_;
  front::StrangerBudget strangers_;
  front::LoginThrottle logins_;
  std::vector<net::ServerSocket> listeners_;  // one for each of the settings
  std::optional<net::TlsContext> tls_;
  std::vector<std::unique_ptr<PortThread>> threads_;
  std::atomic<bool> stopped_{false};
};

}  // namespace sluice::port
