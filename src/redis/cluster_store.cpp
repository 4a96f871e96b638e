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
#include "resp/command_table.hpp"
#include "resp/replica_reads.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// The coroutines below hold the Cluster themselves: the Store may be gone before they end.

/// A request on its way to one node, behind an ASKING where it is there for this once.
struct Attempt {
  Attempt(const Request& request, const Course& course, SteadyTime deadline,
          const CallOptions& options, Link& link, int slot)
      : asking(course.asks ? std::optional{request.asking()} : std::nullopt),
        operation(asking ? *asking : request, std::span{replies}.first(asking ? 2 : 1), deadline,
                  options, &link, slot) {
    operation.redirected = course.is_redirected;
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Value& reply() noexcept { return replies[asking ? 1 : 0]; }

  const std::optional<Request> asking;
  std::array<Value, 2> replies;
  Operation operation;
};

/// `by`: the node that has answered.
Task<Value> call(ClusterPtr cluster, int slot, Request request, CallOptions options,
                 NodePtr* by = nullptr) {
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
    Turn turn{*cluster, slot, course};
    if (course.before || turn.follows()) {
      auto coming = turn.come(way, deadline);
      co_await coming;
      if (way.must_pause()) {
        co_await pause(*cluster, way, request.name(0), deadline, was_sent);
        continue;
      }
      if (!course.node) continue;
    }
    const NodePtr& node = course.node;
    Link& link = node->client->link();
    Attempt attempt{request, course, deadline, options, link, slot};
    Operation& operation = attempt.operation;
    link.submit(operation);
    if (course.version != cluster->version() && slot != Operation::no_slot)
      cluster->sent_late(static_cast<std::uint16_t>(slot), node);
    turn.sent(course.version);
    cluster->look_soon();
    co_await InTurn{operation.done};
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
    if (by) *by = node;
    if (!reply.is_error()) co_return std::move(reply);
    // A forgotten script was not executed; the next time it travels with its text.
    if (request.has_script() && is_forgotten_script(reply) && repeat++ < most_script_repeats)
      continue;
    if (!is_refusal(reply.as_text(), request.runs_foreign_script(), slot))
      co_return checked(request, std::move(reply), was_sent);
    way.refused(*node, reply.as_text(), request.runs_foreign_script());
    if (way.must_pause()) co_await pause(*cluster, way, request.name(0), deadline, was_sent);
  }
}

/// A command that blocks, by its words.
class Blocking {
 public:
  Blocking(Words command, milliseconds time)
      : words_(command.begin(), command.end()), time_(time), left_(time) {}

  milliseconds time() const noexcept { return time_; }
  bool is_over() const noexcept { return left_ <= milliseconds{0}; }
  /// It has blocked for so long, at a node that has lost the slot.
  void has_waited(std::chrono::nanoseconds waited) {
    if (is_for_ever()) return;
    left_ -= std::chrono::ceil<milliseconds>(waited);
  }
  Request request() const {
    std::vector<std::string_view> words{words_.begin(), words_.end()};
    const auto* const spec = resp::find_command(words);
    std::string left;
    if (const auto at = resp::place_of_waiting_time(*spec, words); at && left_ != time_) {
      left = resp::waiting_text(*spec, left_);
      words[*at] = left;
    }
    Request request;
    request.add(words);
    return request;
  }

 private:
  /// Or by a text that the server will refuse.
  bool is_for_ever() const noexcept {
    return time_ == milliseconds::max() || time_ == milliseconds{0};
  }

  const std::vector<std::string> words_;
  const milliseconds time_;
  milliseconds left_;
};

/// A command that a replica may answer, too. Not while the slot is passing from one node to
/// another.
Task<Value> read(ClusterPtr cluster, int slot, Request request, CallOptions options) {
  const auto begun = system_clock().steady();
  const auto course = cluster->course(static_cast<std::uint16_t>(slot), begun);
  if (course.node && !course.before) {
    auto reading = Replicas::read(cluster->replicas_of(course.node), request, options);
    auto reply = co_await reading;
    if (reply && resp::proves_presence(*reply)) co_return std::move(*reply);
  }
  auto calling =
      call(cluster, slot, std::move(request), rest_of(cluster->options(), options, begun));
  co_return co_await calling;
}

Task<Value> call_blocking(ClusterPtr cluster, int slot, Blocking blocking, CallOptions options) {
  const auto patience = deadline_of(cluster->options(), options);
  const auto deadline = deadline_of(cluster->options(), options, blocking.time());
  Way way{*cluster, slot, system_clock().steady()};
  bool was_sent = false;
  for (;;) {
    const Request request = blocking.request();
    const Course course = way.next();
    if (!course.node) {
      way.found_nobody();
      co_await pause(*cluster, way, request.name(0), deadline, was_sent);
      continue;
    }
    if (course.before) co_await pass_fence(*cluster, way, deadline);
    if (way.must_pause()) {
      co_await pause(*cluster, way, request.name(0), deadline, was_sent);
      continue;
    }
    auto borrowing = course.node->client->borrow(patience);
    {
      Loan loan{course.node->client, co_await borrowing};
      const auto begin = system_clock().steady();
      Attempt attempt{request, course, deadline, options, loan.link(), slot};
      Operation& operation = attempt.operation;
      loan.link().submit(operation);
      co_await InTurn{operation.done};
      was_sent |= operation.was_sent;
      if (operation.failure) {
        if (!cluster->is_closed()) cluster->doubt();
        std::rethrow_exception(operation.failure);
      }
      Value& reply = attempt.reply();
      if (operation.returned) {
        way.returned(system_clock().steady());
      } else if (reply.is_error() && is_refusal(reply.as_text(), false, slot)) {
        way.refused(*course.node, reply.as_text());
        blocking.has_waited(system_clock().steady() - begin);
        if (blocking.is_over()) co_return Value{};
      } else {
        co_return checked(request, std::move(reply), was_sent);
      }
    }
    if (way.must_pause()) co_await pause(*cluster, way, request.name(0), deadline, was_sent);
  }
}

/// Slot by slot: what another node has taken over is asked of that one.
Task<Value> call_every(ClusterPtr cluster, Merge merge, Request request, CallOptions options) {
  const auto deadline = deadline_of(cluster->options(), options);
  std::vector<Value> replies;
  std::optional<Error> failure;
  auto left = cluster->slots_of(nullptr);
  // One after another: who clears all wants to hear of the first failure.
  for (std::size_t slot = 0; slot < left.size() && !failure; ++slot) {
    if (!left[slot]) continue;
    const NodePtr node = cluster->owner(slot);
    const auto before = node ? cluster->slots_of(node) : Cluster::Slots{};
    NodePtr by;
    auto in_time = options;
    in_time.timeout = std::max(std::chrono::ceil<milliseconds>(deadline - system_clock().steady()),
                               milliseconds{1});
    auto calling = call(cluster, static_cast<int>(slot), request, in_time, &by);
    try {
      replies.push_back(co_await calling);
      const auto after = cluster->slots_of(by);
      // What has come or gone meanwhile: counted once, and written to rather twice.
      left &= ~(request.only_reads() ? before | after : by == node ? before & after : after);
    } catch (const Error& error) {
      failure = error;
    }
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
  const auto gone = [](const std::string& place) {
    return Error{Errc::server, fmt::format("SCAN: {} has no slots of the cluster any more: begin "
                                           "anew, with the cursor 0",
                                           place)};
  };
  const auto at = words.size() > 1 ? words[1].find('@') : std::string::npos;
  auto node = masters.begin();
  if (at != std::string::npos) {
    // One that is gone: whoever comes after it.
    const auto place = words[1].substr(at + 1);
    node = std::ranges::find_if(
        masters, [&](const NodePtr& one) { return to_string(one->endpoint) == place; });
    if (node == masters.end()) throw gone(place);
    words[1].resize(at);
  }
  if (node == masters.end())
    throw Error{Errc::connection,
                fmt::format("no master of {} is known: {}", cluster->name(), cluster->why_not())};
  const std::vector<std::string_view> views{words.begin(), words.end()};
  Request request;
  request.add(views);
  Value answer;
  const auto slots = cluster->slots_of(*node);
  int slot = 0;
  while (slot + 1 < hash_slots && !slots[static_cast<std::size_t>(slot)]) ++slot;
  const auto outcome = co_await exchange((*node)->client->link(), request, std::span{&answer, 1},
                                         deadline_of(cluster->options(), options), options, slot);
  if (outcome.returned) throw gone(to_string((*node)->endpoint));
  Value reply = checked(request, std::move(answer), outcome.was_sent);
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
      return call_blocking(cluster_, slot_of(route), Blocking{command, needs.blocks_for}, options);
    if (cluster_->options().replica_max_lag && options.read_from == ReadFrom::replica &&
        resp::may_read_from_replica(command, true))
      return read(cluster_, slot_of(route), std::move(request), options);
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
