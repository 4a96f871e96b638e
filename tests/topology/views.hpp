/// Replies and views, written as tests need them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "sluice/value.hpp"
#include "topology/cluster_view.hpp"

namespace sluice::topology::test {

inline Value text(std::string_view bytes) { return Value::bulk_string(std::string{bytes}); }
inline Value number(std::int64_t value) { return Value::integer(value); }

inline const Endpoint answerer{"10.0.0.9", 7009};
inline Endpoint at(std::uint16_t port) { return {"10.0.0.1", port}; }

/// The id of the node at 10.0.0.1:7000 + `node`.
inline std::string id_of(int node) { return fmt::format("{:040x}", node); }

/// A line of CLUSTER NODES. `slots`: " 0-5 7", with the blank. `master`: -1, or whose replica it
/// is.
inline std::string line(int node, std::uint64_t epoch, std::string_view slots = "",
                        int master = -1) {
  return fmt::format("{} 10.0.0.1:{}@17000 {} {} 0 0 {} connected{}\n", id_of(node), 7000 + node,
                     master < 0 ? "master" : "slave", master < 0 ? "-" : id_of(master), epoch,
                     slots);
}

/// CLUSTER NODES of three masters, the first one with a replica.
inline const auto three = line(1, 1, " 0-5460") + line(2, 2, " 5461-10922") +
                          line(3, 3, " 10923-16383") + line(4, 1, "", 1);

inline Value info(std::uint64_t epoch, std::string_view state = "ok") {
  return text(
      fmt::format("cluster_state:{}\r\ncluster_slots_assigned:16384\r\n"
                  "cluster_current_epoch:{}\r\n",
                  state, epoch));
}

/// What a node answers that knows no SHARDS.
inline std::vector<Value> answer(std::string_view nodes, std::uint64_t epoch = 99,
                                 std::string_view state = "ok") {
  return {text(nodes), Value::error("ERR Unknown subcommand or wrong number of arguments"),
          info(epoch, state)};
}

inline ClusterView view(std::string_view nodes, std::uint64_t epoch = 99,
                        std::string_view state = "ok", const Endpoint& from = answerer) {
  return view_of(answer(nodes, epoch, state), Form::shards, from, false);
}

/// The message of the Error that `call` throws; empty: none.
template <class Call>
std::string error_of(Call call) {
  try {
    (void)call();
  } catch (const Error& error) {
    return fmt::format("{}{}", error.effect() == Effect::none ? "" : "effect! ", error.message());
  }
  return {};
}

}  // namespace sluice::topology::test
