/// Requests on their way to the server that will do them, after another has refused them without
/// having done anything (MOVED, ASK, TRYAGAIN, CLUSTERDOWN, READONLY ...), or could not be reached:
/// what a pool before a cluster, or before Sentinels, keeps from its clients.
///
/// MOVED and ASK are followed at once. Behind the others, and where nodes send a request round,
/// there is a pause of 2 to 50 ms, and then it goes to the home that its key has by then. When the
/// pool's `timeout` (without one: 30 s) is over, the client gets the last error; in other words if
/// that was MOVED or ASK.
///
/// Guarantee: what goes on was not done, by the word of a server or because it was never written to
///   a connection. Requests of one slot that wait go on in the order in which they were refused,
///   over one connection; what their client sends next is not read until all before it is answered.
/// Not guaranteed: the order of requests of one slot that were under way together, if the first was
///   refused and one behind it was not (TRYAGAIN, or keys of which some have moved).
/// What a script says is a refusal if it is in a server's own words, and a redirection if it is of
///   the slot of its keys; it leads to nodes of the map alone, and changes the way of no other
///   request.
/// Bounds: a request of more than 64 KiB is not kept, and its refusal is told to the client.
/// Threads: the worker's.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "loop/loop.hpp"
#include "proxy/flow/request.hpp"
#include "proxy/flow/upstream.hpp"

namespace sluice::proxy::flow {

class Pool;
class Server;

class Detours {
 public:
  /// Bytes of a request that is kept until it is answered.
  static constexpr std::size_t most_kept = std::size_t{64} << 10;
  /// Redirections in a row that are followed at once; more are a circle.
  static constexpr int most_hops = 4;
  /// How long a request may be on its way.
  static std::chrono::milliseconds patience(const Pool& pool);

  explicit Detours(Pool& pool) : pool_(pool) {}
  ~Detours() { end(); }
  Detours(const Detours&) = delete;
  Detours& operator=(const Detours&) = delete;

  /// Whether the error is such: before a cluster each topology::is_refusal(), before Sentinels that
  /// of a server that is no master any more.
  bool takes(std::string_view error) const noexcept;
  /// `from` has given an error that it takes(). The request goes on, or its receiver has been
  /// told. False: neither, these are the words of a script that has been done. REQUIRES: it has a
  /// receiver, and its body unless that is too large.
  bool refused(Request& request, const Upstream& from, std::string_view error);
  /// It was never written. False: its time is over.
  bool unsent(Request& request, const Upstream& from, Failure failure);

  /// What an error means that a server gave to a request which has a connection of its own. A
  /// server: ask there, at once; null: later, at home.
  struct Course {
    Server* to = nullptr;
    bool asks = false;
  };
  Course course(const Server& by, std::string_view error);
  /// The error in words that a client of one server knows.
  static std::string told(std::string_view error);
  static constexpr std::string_view asking = "*1\r\n$6\r\nASKING\r\n";

  bool empty() const noexcept { return waiting_.empty(); }
  /// All that waits fails.
  void end();

 private:
  struct Waiting {
    Request* request;
    Lane lane;
    std::string key;  ///< empty: any server will do
    std::string error;
  };
  /// Those of one client in one slot (before Sentinels: of one client).
  struct RowKey {
    std::uint64_t client;
    std::uint16_t slot;
    friend auto operator<=>(const RowKey&, const RowKey&) = default;
  };
  struct Row {
    std::deque<Waiting> requests;
    loop::Loop::TimerId timer{};
  };

  bool is_script(const Request& request) const;
  bool is_refusal_of(const Request& script, std::string_view error, const Server& by) const;
  Course course_of_script(const Server& by, std::string_view error);
  void go(Request& request, const Lane& lane, Course course);
  void wait(std::uint64_t client, Request& request, const Upstream& from, std::string_view error);
  void go_on(RowKey key);
  std::string key_of(const Request& request) const;
  RowKey row_of(std::uint64_t client, std::string_view key) const;
  SteadyTime deadline(const Request& request) const;

  Pool& pool_;
  std::map<RowKey, Row> waiting_;
  bool ended_ = false;
};

}  // namespace sluice::proxy::flow
