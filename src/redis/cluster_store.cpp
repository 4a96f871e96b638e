#include "redis/cluster_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "base/event.hpp"
#include "redis/calls.hpp"
#include "redis/cluster.hpp"
#include "redis/cluster_batch.hpp"
#include "redis/cluster_route.hpp"
#include "redis/cluster_way.hpp"
#include "store/reply_error.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// A node that owes a reply is looked at after so long.
constexpr auto look_after = 500ms;

// The coroutines below hold the Cluster themselves: the Store may be gone before they end.

/// A request on its way to one node, behind an ASKING where it is there for this once.
struct Attempt {
  Attempt(const Request& request, const Course& course, SteadyTime deadline,
          const CallOptions& options, Link& link, int slot)
      : asking(course.asks ? std::optional{request.asking()} : std::nullopt),
        operation(asking ? *asking : request, std::span{replies}.first(asking ? 2 : 1), deadline,
                  options, &link, slot) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Value& reply() noexcept { return replies[asking ? 1 : 0]; }

  const std::optional<Request> asking;
  std::array<Value, 2> replies;
  Operation operation;
};

Task<Value> call(ClusterPtr cluster, int slot, Request request, CallOptions options) {
  const auto deadline = deadline_of(cluster->options(), options);
  Way way{*cluster, slot, system_clock().steady()};
  bool was_sent = false;
  for (int repeat = 0;;) {
    const Course& course = way.next();
    if (!course.node) {
      way.found_nobody();
      co_await pause(*cluster, way, request.name(0), deadline, was_sent);
      continue;
    }
    if (course.before) co_await pass_fence(*cluster, course, slot, system_clock().steady());
    const NodePtr& node = course.node;
    Link& link = node->client->link();
    Attempt attempt{request, course, deadline, options, link, slot};
    Operation& operation = attempt.operation;
    link.submit(operation);
    if (course.version != cluster->version() && slot != Operation::no_slot)
      cluster->sent_late(static_cast<std::uint16_t>(slot), node);
    cluster->reactor().wake_before(Clock::add(system_clock().steady(), look_after));
    co_await operation.done;
    was_sent |= operation.was_sent;
    if (operation.returned) {
      way.returned(system_clock().steady());
      continue;
    }
    if (operation.failure) {
      if (!cluster->is_closed()) cluster->doubt();
      std::rethrow_exception(operation.failure);
    }
    Value& reply = attempt.reply();
    if (!reply.is_error()) co_return std::move(reply);
    // A forgotten script was not executed; the next time it travels with its text.
    if (request.has_script() && is_forgotten_script(reply) && repeat++ < most_script_repeats)
      continue;
    if (!is_refusal(reply.as_text())) co_return checked(request, std::move(reply), was_sent);
    way.refused(*node, reply.as_text());
    if (way.must_pause()) co_await pause(*cluster, way, request.name(0), deadline, was_sent);
  }
}

Task<Value> call_blocking(ClusterPtr cluster, int slot, Request request, milliseconds blocks_for,
                          CallOptions options) {
  const auto patience = deadline_of(cluster->options(), options);
  const auto deadline = deadline_of(cluster->options(), options, blocks_for);
  Way way{*cluster, slot, system_clock().steady()};
  bool was_sent = false;
  for (;;) {
    const Course course = way.next();
    if (!course.node) {
      way.found_nobody();
      co_await pause(*cluster, way, request.name(0), deadline, was_sent);
      continue;
    }
    if (course.before) co_await pass_fence(*cluster, course, slot, system_clock().steady());
    auto borrowing = course.node->client->borrow(patience);
    std::optional<Error> refusal;
    {
      Loan loan{course.node->client, co_await borrowing};
      Attempt attempt{request, course, deadline, options, loan.link(), slot};
      Operation& operation = attempt.operation;
      loan.link().submit(operation);
      co_await operation.done;
      was_sent |= operation.was_sent;
      if (operation.failure) {
        if (!cluster->is_closed()) cluster->doubt();
        std::rethrow_exception(operation.failure);
      }
      Value& reply = attempt.reply();
      if (operation.returned) {
        way.returned(system_clock().steady());
      } else if (reply.is_error() && is_refusal(reply.as_text())) {
        way.refused(*course.node, reply.as_text());
      } else {
        co_return checked(request, std::move(reply), was_sent);
      }
    }
    if (way.must_pause()) co_await pause(*cluster, way, request.name(0), deadline, was_sent);
  }
}

/// One node, whatever slots it has.
Task<Value> call_node(ClusterPtr cluster, NodePtr node, Request request, CallOptions options) {
  Value reply;
  const auto deadline = deadline_of(cluster->options(), options);
  const bool was_sent =
      co_await exchange(node->client->link(), request, std::span{&reply, 1}, deadline, options);
  co_return checked(request, std::move(reply), was_sent);
}

Task<Value> call_every(ClusterPtr cluster, Merge merge, Request request, CallOptions options) {
  std::vector<Value> replies;
  std::optional<Error> failure;
  // One after another: who clears all wants to hear of the first failure.
  for (const auto& node : cluster->masters()) {
    auto calling = call_node(cluster, node, request, options);
    try {
      replies.push_back(co_await calling);
    } catch (const Error& error) {
      failure = error;
    }
    if (failure) break;
  }
  if (failure && (replies.empty() || request.only_reads())) throw *failure;
  if (failure)
    throw Error{
        failure->errc(),
        fmt::format("{} ({} masters have done it before)", failure->message(), replies.size()),
        Effect::unknown};
  if (replies.empty())
    throw Error{Errc::connection,
                fmt::format("no master of {} is known: {}", cluster->name(), cluster->why_not())};
  co_return merged(merge, std::move(replies));
}

/// The cursor is that of a node, '@' and where the node listens.
Task<Value> scan(ClusterPtr cluster, std::vector<std::string> words, CallOptions options) {
  auto masters = cluster->masters();
  std::ranges::sort(masters, {}, [](const NodePtr& node) { return node->endpoint; });
  const auto at = words.size() > 1 ? words[1].find('@') : std::string::npos;
  auto node = masters.begin();
  if (at != std::string::npos) {
    // One that is gone: whoever comes after it.
    const auto place = words[1].substr(at + 1);
    node = std::ranges::find_if(
        masters, [&](const NodePtr& one) { return to_string(one->endpoint) == place; });
    if (node == masters.end())
      throw Error{Errc::server, fmt::format("SCAN: {} has no slots of the cluster any more: begin "
                                            "anew, with the cursor 0",
                                            place)};
    words[1].resize(at);
  }
  if (node == masters.end())
    throw Error{Errc::connection,
                fmt::format("no master of {} is known: {}", cluster->name(), cluster->why_not())};
  const std::vector<std::string_view> views{words.begin(), words.end()};
  Request request;
  request.add(views);
  auto calling = call_node(cluster, *node, std::move(request), options);
  Value reply = co_await calling;
  if (!reply.is_aggregate() || reply.as_items().empty()) co_return reply;
  Value& cursor = reply.as_items().front();
  const bool is_end = cursor.is_text() && cursor.as_text() == "0";
  if (is_end && ++node == masters.end()) co_return reply;
  cursor = Value::bulk_string(
      fmt::format("{}@{}", is_end ? "0" : cursor.as_text(), to_string((*node)->endpoint)));
  co_return reply;
}

int slot_of(const Route& route) {
  return route.to == Route::To::slot ? route.slot : Operation::no_slot;
}

const Script& edition(const Script& script) { return script.sharded ? *script.sharded : script; }

class Tracking final : public Listener::Registration {
 public:
  Tracking(ClusterPtr cluster, std::string prefix, MessageHandler function)
      : cluster_(std::move(cluster)),
        tracker_(
            std::make_shared<ClusterTrackers::Tracker>(std::move(prefix), std::move(function))) {
    cluster_->trackers().add(tracker_, cluster_->masters());
  }
  ~Tracking() override {
    if (!cluster_->is_of_parent()) cluster_->trackers().remove(tracker_);
  }

 private:
  const ClusterPtr cluster_;
  const std::shared_ptr<ClusterTrackers::Tracker> tracker_;
};

/// Calls its function when a node is connected again, or slots have another master.
class Watch final : public Listener::Registration {
 public:
  Watch(ClusterPtr cluster, std::function<void()> function)
      : cluster_(std::move(cluster)),
        handler_(std::make_shared<Handler>(
            [function = std::move(function)](const Message&) { function(); })) {
    cluster_->watchers().add_watcher(handler_);
  }
  ~Watch() override {
    if (cluster_->is_of_parent()) return;
    cluster_->watchers().remove_watcher(*handler_);
    handler_->end();
  }

 private:
  const ClusterPtr cluster_;
  const std::shared_ptr<Handler> handler_;
};

class ClusterStore final : public Store {
 public:
  explicit ClusterStore(ClusterPtr cluster) : cluster_(std::move(cluster)) {}
  ~ClusterStore() override {
    // A child of fork() has neither the thread nor a claim on the connections.
    if (!cluster_->is_of_parent()) cluster_->close();
  }

  using Store::run;

  Task<Value> run(Words command, CallOptions options) override {
    check_process();
    const Needs needs = needs_of(command);
    const Route route = route_of(command);
    Request request;
    request.add(command);
    switch (route.to) {
      case Route::To::every: return call_every(cluster_, route.merge, std::move(request), options);
      case Route::To::scan: return scan(cluster_, {command.begin(), command.end()}, options);
      default: break;
    }
    if (needs.own_connection)
      return call_blocking(cluster_, slot_of(route), std::move(request), needs.blocks_for, options);
    return call(cluster_, slot_of(route), std::move(request), options);
  }

  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    check_process();
    Request request;
    request.add(edition(script), keys, args);
    return call(cluster_, slot_of(route_of_keys(keys)), std::move(request), options);
  }

  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    check_process();
    if (batch.empty()) return Task<std::vector<Value>>::ready();
    const auto wait = replica_wait_of(batch);
    Batch sharded;
    std::vector<int> slots;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Batch::Item item = batch.items()[i];
      if (!wait || i + 1 < batch.size()) slots.push_back(slot_of_item(item));
      if (item.script) item.script = &edition(*item.script);
      sharded.add(std::move(item));
    }
    return call_batch(cluster_, std::move(sharded), std::move(slots), wait, options);
  }

  Task<Listener> subscribe(std::string channel, MessageHandler handler) override {
    return ClusterChannels::listen(cluster_, Hearer::Kind::sharded, std::move(channel),
                                   std::move(handler));
  }
  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    return cluster_->callbacks().listen(
        std::move(handler),
        [cluster = cluster_, channel = std::move(channel)](MessageHandler deliver) {
          return ClusterChannels::listen(cluster, Hearer::Kind::classic, channel,
                                         std::move(deliver));
        });
  }
  Listener watch_connection(std::function<void()> handler) override {
    return Listener{std::make_unique<Watch>(cluster_, std::move(handler))};
  }
  Listener on_reconnect(std::function<void()> handler) override {
    return cluster_->callbacks().watch(
        std::move(handler), [this](auto deliver) { return watch_connection(std::move(deliver)); });
  }
  Listener track(std::string prefix, MessageHandler handler) override {
    check_process();
    return Listener{std::make_unique<Tracking>(cluster_, std::move(prefix), std::move(handler))};
  }
  void call_back(std::function<void()> callback) noexcept override {
    cluster_->callbacks().call(std::move(callback));
  }

  Clock& clock() noexcept override { return system_clock(); }
  /// None: each call has the connection of its own node.
  Driver* driver() noexcept override { return nullptr; }
  bool is_sharded() const noexcept override { return true; }
  std::string describe() const override { return cluster_->name(); }

 private:
  void check_process() const {
    if (cluster_->is_of_parent()) throw closed_by_fork();
  }

  static int slot_of_item(const Batch::Item& item) {
    const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
    if (item.script) return slot_of(route_of_keys(Words{words}.first(item.key_count)));
    const Route route = route_of(words);
    if (route.to == Route::To::every || route.to == Route::To::scan)
      throw Error{Errc::bad_argument,
                  fmt::format("{} goes to all nodes of a cluster: run it alone, not in a batch",
                              name_of_command(words))};
    return slot_of(route);
  }

  const ClusterPtr cluster_;
};

}  // namespace

std::unique_ptr<Store> open_cluster(ClusterStoreOptions options) {
  NoBlocking::check("opening a Store");
  auto cluster = std::make_shared<Cluster>(std::move(options));
  auto store = std::make_unique<ClusterStore>(cluster);
  cluster->open();
  return store;
}

}  // namespace sluice::redis
