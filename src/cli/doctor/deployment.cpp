#include "cli/doctor/deployment.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "sluice/store.hpp"

namespace sluice::cli {
namespace {

using topology::Endpoint;

/// Endpoints in the order in which they were heard of, each once.
class ToAsk {
 public:
  explicit ToAsk(std::vector<Endpoint> seeds) : all_(std::move(seeds)) {}

  void add(const Endpoint& one) {
    if (std::ranges::find(all_, one) == all_.end()) all_.push_back(one);
  }
  const Endpoint* next() {
    return asked_ == std::min(all_.size(), most_asked) ? nullptr : &all_[asked_++];
  }
  bool is_whole() const { return all_.size() <= most_asked; }

 private:
  std::vector<Endpoint> all_;
  std::size_t asked_ = 0;
};

/// The value of `name` in a map, as a number; 0: there is none.
long number_of(const Value& reply, std::string_view name) {
  if (!reply.is_aggregate()) return 0;
  const auto& items = reply.as_items();
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is_text() && items[i].as_text() == name && items[i + 1].is_text())
      return std::atol(items[i + 1].as_text().c_str());
  return 0;
}

SentinelSaid ask_sentinel(const Servers& servers, const Endpoint& sentinel) {
  SentinelSaid said{.sentinel = sentinel, .view = {}, .why_not = {}, .no_quorum = {}};
  try {
    const auto store = servers.open_sentinel(sentinel);
    Batch batch;
    for (auto& words : topology::sentinel_commands(servers.master_name()))
      batch.add({.words = std::move(words)});
    batch.add({"SENTINEL", "CKQUORUM", servers.master_name()});
    const auto replies = store->run(std::move(batch)).get();
    said.view = topology::sentinel_view_of(std::span{replies}.first(replies.size() - 1), sentinel);
    said.quorum = number_of(replies[1], "quorum");
    said.down_after_ms = number_of(replies[1], "down-after-milliseconds");
    if (replies.back().is_error()) said.no_quorum = replies.back().as_text();
  } catch (const Error& error) {
    said.why_not = error.message();
  }
  return said;
}

NodeSaid ask_node(const Servers& servers, const Endpoint& node) {
  NodeSaid said{.node = node, .view = {}, .why_not = {}};
  try {
    const auto store = servers.open_server(node);
    const auto ask = [&](topology::Form form) {
      Batch batch;
      for (const auto& [command, part] : topology::commands_of(form)) batch.add({command, part});
      return store->run(std::move(batch)).get();
    };
    auto form = topology::Form::shards;
    auto replies = ask(form);
    if (topology::lacks_shards(replies)) replies = ask(form = topology::Form::slots);
    said.view = topology::view_of(replies, form, node, servers.is_secure());
  } catch (const Error& error) {
    said.why_not = error.message();
  }
  return said;
}

}  // namespace

std::vector<SentinelSaid> ask_sentinels(const Servers& servers) {
  ToAsk to_ask{servers.seeds()};
  std::vector<SentinelSaid> all;
  while (const auto* const next = to_ask.next()) {
    all.push_back(ask_sentinel(servers, *next));
    if (all.back().view)
      for (const auto& other : all.back().view->sentinels) to_ask.add(other);
  }
  return all;
}

ClusterSaid ask_nodes(const Servers& servers) {
  ToAsk to_ask{servers.seeds()};
  ClusterSaid all;
  while (const auto* const next = to_ask.next()) {
    all.nodes.push_back(ask_node(servers, *next));
    const auto& view = all.nodes.back().view;
    if (!view) continue;
    for (const auto& other : view->nodes)
      if (other.node.endpoint && !other.is_answerer) to_ask.add(*other.node.endpoint);
    if (view->is_ok) all.map = all.map.merged(std::span{&*view, 1});
  }
  all.is_whole = to_ask.is_whole();
  return all;
}

}  // namespace sluice::cli
