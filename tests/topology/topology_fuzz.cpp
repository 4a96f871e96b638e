// The answers of nodes and Sentinels, of any bytes. The first byte chooses what is asked; the rest
// are replies of RESP, one behind the other. What is refused is refused with an Error without
// effect; a view that is made keeps its promises, and so does the map that is made of it.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply_parser.hpp"
#include "support/fuzz_require.hpp"
#include "topology/cluster_map.hpp"
#include "topology/freshness.hpp"
#include "topology/sentinel_view.hpp"

namespace {

using namespace sluice;
using test::require;
using namespace sluice::topology;

std::vector<Value> replies_of(std::string_view bytes) {
  resp::ReplyParser parser{{.bulk = 1 << 16, .items = 4096, .depth = 16, .whole = 1 << 20}};
  std::vector<Value> replies;
  try {
    while (auto reply = parser.next(bytes)) replies.push_back(std::move(*reply));
  } catch (const Error&) {
    // what came before it counts
  }
  return replies;
}

void check_view(const std::vector<NodeView>& nodes) {
  std::set<std::string> ids;
  std::size_t slots = 0;
  for (const auto& one : nodes) {
    require(!one.node.id.empty() && ids.insert(one.node.id).second, "an id is there twice");
    require(!one.node.endpoint || (!one.node.endpoint->host.empty() && one.node.endpoint->port > 0),
            "an endpoint is none");
    require(one.slots.empty() || one.node.role == Role::master, "a replica has slots");
    for (const auto& range : one.slots) {
      require(range.first <= range.last && range.last < hash_slots, "a range is none");
      slots += range.last - range.first + 1U;
    }
  }
  require(slots <= hash_slots, "a slot has two owners");
}

void check_map(const ClusterView& view) {
  check_view(view.nodes);
  const auto map = ClusterMap{}.merged({&view, 1});
  std::size_t slots = 0;
  for (const auto& one : view.nodes)
    for (const auto& range : one.slots) {
      slots += range.last - range.first + 1U;
      require(!view.is_ok || (map.owner(range.first) && map.owner(range.first)->id == one.node.id),
              "the map has another owner");
    }
  require(map.uncovered() == hash_slots - (view.is_ok ? slots : 0), "the map has other slots");
  require(map.merged({&view, 1}) == map, "the same view again makes another map");
}

void check(int kind, const std::vector<Value>& replies) {
  const Endpoint answerer{"10.0.0.9", 7009};
  const bool tls = kind / 8 % 2 == 1;
  if (kind % 8 == 0) return check_map(view_of(replies, Form::shards, answerer, tls));
  if (kind % 8 == 1) return check_map(view_of(replies, Form::slots, answerer, tls));
  if (kind % 8 == 5) {
    const auto view = sentinel_view_of(replies, answerer);
    return require(!view.master || view.master->port > 0, "a master is none");
  }
  for (const Value& reply : replies) {
    if (kind % 8 == 2) check_view(parse_nodes(reply, answerer));
    if (kind % 8 == 3) check_view(parse_shards(reply, answerer, tls));
    if (kind % 8 == 4) check_view(parse_slots(reply, answerer));
    if (kind % 8 == 6) (void)parse_role(reply, answerer);
    if (kind % 8 == 7 && reply.is_text())
      if (const auto told = parse_redirection(reply.as_text(), answerer))
        require(told->slot < hash_slots && (!told->to || told->to->port > 0), "it leads nowhere");
    if (kind % 8 == 7) (void)replication_of(reply, answerer);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    check(data[0], replies_of({reinterpret_cast<const char*>(data) + 1, size - 1}));
  } catch (const Error& error) {
    require(error.effect() == Effect::none, "a refusal has an effect");
  }
  return 0;
}
