// Each script of ours at both nodes of a slot that is under way, with every share of its keys at
// each of them: it is refused and changes nothing, or it is done as on one server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <regex>
#include <stdexcept>
#include <thread>

#include "contract/recorded_scripts.hpp"
#include "contract/script_names.hpp"
#include "lock/mutex/leased_lock.hpp"
#include "lock/quorum/quorum.lua.hpp"
#include "lock/wait/report_waiters.lua.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/fencing.hpp"
#include "sluice/id.hpp"
#include "sluice/latch.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/shared_mutex.hpp"
#include "sluice/waiting_room.hpp"
#include "support/comes_true.hpp"
#include "support/foreign.hpp"
#include "support/temp_dir.hpp"
#include "topology/endpoint.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::RecordedScript;

/// Two processes that share all locks, and what they have asked.
struct Programs {
  explicit Programs(test::ClusterRig& rig)
      : log(rig), first_(open(rig.url())), second_(open(rig.url())) {}

  /// Waits until the first program has asked so.
  void await(const std::string& script) {
    EXPECT_TRUE(comes_true([&] { return log.names().contains(script); })) << script;
  }

  test::ScriptLog log;

 private:
  std::unique_ptr<Store> first_, second_;

 public:
  test::RecordingStore one{*first_, log}, other{*second_, log};
};

/// Waits until another process is known to wait for the lock.
template <class Lock>
void await_waiter(Lock& lock) {
  EXPECT_TRUE(comes_true([&] { return !lock.info().get().waiters.empty(); }));
}

/// A lock that is taken, waited for by another process, handed over, and ended from outside.
template <class Lock>
void use_exclusively(Programs& programs, const std::string& name) {
  Lock here{programs.one, name, {.lease = 600ms}}, there{programs.other, name};
  const Owner owner;
  for (int turn = 0; turn < 2; ++turn) {
    auto held = here.acquire(owner).get();
    auto inner = here.acquire(owner).get();
    std::jthread waiting{[&] {
      if (auto late = there.try_acquire(20s).get()) (void)late->release().get();
    }};
    await_waiter(here);
    (void)here.try_acquire(20ms).get();
    inner = {};
    (void)held.release().get();
  }
  auto held = here.acquire().get();
  programs.await(typeid(Lock) == typeid(SharedMutex) ? "lock/shared/renew_write"
                                                     : "lock/mutex/renew");
  (void)there.force_release().get();
  (void)there.force_release().get();
}

/// Threads of one process take turns, each of which another process ends.
void use_in_turns(Programs& programs) {
  const auto share = [&](Store& store) {
    return [&](const std::stop_token& stop) {
      Mutex mutex{store, "turns", {.hand_off = {.turn = 1ms}}};
      while (!stop.stop_requested()) (void)mutex.try_acquire(100ms).get();
    };
  };
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 2; ++i) crowd.emplace_back(share(programs.one));
  crowd.emplace_back(share(programs.other));
  programs.await("lock/mutex/pass");
}

void use_shared(Programs& programs) {
  use_exclusively<SharedMutex>(programs, "shared");
  SharedMutex here{programs.one, "readers", {.lease = 600ms}}, there{programs.other, "readers"};
  const Owner owner;
  auto reading = here.acquire_shared(owner).get();
  auto again = here.acquire_shared(owner).get();
  auto other = there.acquire_shared().get();
  std::jthread writing{[&] {
    if (auto late = there.try_acquire(20s).get()) (void)late->release().get();
  }};
  await_waiter(here);
  std::jthread late_reader{[&] {
    if (auto late = here.try_acquire_shared(20s).get()) (void)late->release().get();
  }};
  programs.await("lock/shared/renew_read");
  again = {};
  (void)reading.release().get();
  (void)other.release().get();
  writing.join();
  late_reader.join();
  auto last = here.acquire_shared().get();
  (void)there.force_release().get();
}

void use_permits(Programs& programs) {
  Semaphore here{programs.one, "permits", {.lease = 600ms}}, there{programs.other, "permits"};
  here.ensure_permits(2).get();
  (void)here.try_set_permits(2).get();
  auto both = here.acquire(2).get();
  std::jthread waiting{[&] {
    if (auto late = there.try_acquire(1, 20s).get()) (void)late->release().get();
  }};
  EXPECT_TRUE(comes_true([&] { return !here.info().get().waiters.empty(); }));
  programs.await("lock/semaphore/renew");
  (void)both.release().get();
  waiting.join();
  here.add_permits(1).get();
  (void)here.available().get();
  here.release_unowned().get();
  (void)here.drain().get();

  PermitSemaphore permits{programs.one, "single"};
  permits.set_permits(3).get();
  auto one = permits.acquire().get();
  const auto taken = permits.take(10s).get();
  ASSERT_TRUE(taken);
  (void)permits.update_lease(*taken, 20s).get();
  (void)permits.release(*taken).get();
  auto many = permits.try_acquire_many(2).get();
}

void use_latch_and_limiter(Programs& programs) {
  Latch latch{programs.one, "latch"};
  for (int turn = 0; turn < 2; ++turn) {
    (void)latch.try_set_count(3).get();
    (void)latch.count_down_once("part").get();
    (void)latch.count_down().get();
    (void)latch.state().get();
    (void)latch.count_down().get();
    latch.reset(1).get();
    latch.reset(0).get();
  }
  RateLimiter limiter{programs.one, "limiter", {.rate = 2, .interval = 100ms}};
  for (int turn = 0; turn < 5; ++turn) (void)limiter.acquire().get();
  (void)limiter.try_acquire(2, 1s).get();
  // Idle for an interval, so that its log has nothing to keep.
  EXPECT_TRUE(comes_true([&] { return limiter.available().get() == 2; }));
  (void)limiter.try_acquire().get();
  limiter.set_rate(3, 1h).get();
  constexpr auto acquire = [](RateLimiter& from) -> test::Foreign {
    auto acquiring = from.acquire();
    co_await acquiring;
  };
  acquire(limiter).coroutine.destroy();
  programs.await("lock/limiter/give_back");
}

void use_other_locks(Programs& programs) {
  const std::vector<std::string> names{"{m}1", "{m}2"};
  MultiLock here{programs.one, names}, there{programs.other, names};
  auto held = here.acquire().get();
  std::jthread waiting{[&] {
    if (auto late = there.try_acquire(20s).get()) (void)late->release().get();
  }};
  Mutex first{programs.one, "{m}1"};
  await_waiter(first);
  (void)held.release().get();
  waiting.join();

  QuorumLock quorum{{&programs.one}, "quorum", {.lease = 600ms}};
  auto most = quorum.acquire().get();
  programs.await("lock/quorum/renew");
  const auto request = programs.one.run({"HGET", "quorum", "sluice:request"}).get().as_text();
  const auto token = std::to_string(most.token().value + 1);
  (void)programs.one
      .run(scripts::lock_quorum_raise, {"quorum", "redisson_lock_token:{quorum}"}, {request, token})
      .get();
  for (const auto* const who : {"first", "second"})
    (void)programs.one
        .run(scripts::lock_wait_report_waiters, {"sluice_lock_waiters:{w}"},
             {"inbox", who, "1000", "owner holder"})
        .get();
  programs.one.run({"HSET", "sluice_lock_waiters:{w}", "dead", "1 1 inbox owner holder"}).get();
  programs.one.run({"HDEL", "sluice_lock_waiters:{w}", "first", "second"}).get();
  (void)programs.one
      .run(scripts::lock_wait_report_waiters, {"sluice_lock_waiters:{w}"},
           {"inbox", "third", "1000", "owner holder"})
      .get();
  (void)most.release().get();

  lock::LeasedLock leased{programs.one, "leased"};
  const auto owner = lock::owner_of_wish("wish");
  for (int turn = 0; turn < 2; ++turn) {
    const auto hold = leased.try_acquire({owner, 10s, "test"}).get();
    ASSERT_TRUE(hold);
    (void)leased.renew(owner, 10s).get();
    (void)leased.try_acquire({lock::owner_of_wish("another"), 10s, "test"}).get();
    if (turn == 0) (void)leased.release(owner).get();
    if (turn == 1) (void)leased.withdraw(owner, hold->token).get();
  }
  Fence fence{programs.one, "fence"};
  (void)fence.admit({1}).get();
  (void)fence.run({2}, {"{fence}1"}, {"SET", "{fence}1", "1"}).get();
  (void)fence.run({3}, {"{fence}1"}, {"DEL", "{fence}1"}).get();
}

void use_numbers(Programs& programs) {
  Series series{programs.one, "series"};
  for (int i = 0; i < 2; ++i) {
    (void)series.next().get();
    (void)series.next_of("wish", 2).get();
    (void)Series::repair(programs.one, "series", {.given = 9, .by = "me", .why = "test"}).get();
  }
  IdWorker ids{programs.one, "ids"};
  (void)ids.next().get();
  IdWorker more{programs.one, "ids"};
  (void)more.next().get();
}

void use_cache(Programs& programs) {
  CacheGuard<std::string> slow{programs.one, "slow", {.lease = 100ms}};
  (void)slow
      .get("1",
           [&] {
             programs.await("cache/renew");
             return std::optional<std::string>{"loaded"};
           })
      .get();
  CacheGuard<std::string> cache{programs.one, "cache"}, other{programs.other, "cache"};
  for (const auto* const key : {"1", "2"}) {
    (void)cache
        .get(key,
             [&] {
               cache.invalidate("2").get();
               return std::optional<std::string>{"loaded"};
             })
        .get();
    (void)other.get(key, [] { return std::optional<std::string>{"loaded"}; }).get();
    cache.put(key, "put").get();
    cache.invalidate(key).get();
    cache.invalidate_twice(key, 1ms).get();
  }
  (void)cache.get("none", [] { return std::optional<std::string>{}; }).get();
  (void)cache.get("nobody", [] { return std::optional<std::string>{}; }).get();
  try {
    (void)cache.get("fails", []() -> std::optional<std::string> { throw std::runtime_error{"no"}; })
        .get();
  } catch (const std::exception&) {  // as it is to be
  }
}

void use_filter(Programs& programs) {
  SharedBloomFilter filter{programs.one, "{f}1"};
  filter.ensure_created({.expected = 20, .scalable = true}).get();
  for (int i = 0; i < 60; ++i) (void)filter.add(i).get();
  (void)filter.contains(1).get();
  (void)filter.expire(10min).get();
  (void)filter.add(61).get();
  (void)filter.persist().get();
  SharedBloomFilter one{programs.one, "{f}2"}, two{programs.one, "{f}3"};
  one.ensure_created({.expected = 20}).get();
  two.ensure_created({.expected = 20}).get();
  (void)two.add("a").get();
  one.merge({"{f}3"}).get();
  for (int turn = 0; turn < 2; ++turn) {
    auto rebuild = two.try_rebuild({.expected = 40}).get();
    ASSERT_TRUE(rebuild);
    const std::vector<std::string_view> keys{"b", "c"};
    rebuild->add(keys).get();
    (void)two.add("d").get();
    if (turn == 0) rebuild->finish().get();
  }
  const test::TempDir folder;
  one.save((folder / "filter").string()).get();
  one.load((folder / "filter").string()).get();
  (void)one.rename("{f}4").get();
  (void)filter.remove().get();
}

void use_room(Programs& programs) {
  const TokenKeys keys{{{"k1", std::string(32, 'k')}}};
  auto room =
      WaitingRoom::create(programs.one, keys,
                          {.name = "room", .rate = 50, .interval = 100ms, .inside = 3, .hold = 1s})
          .get();
  std::vector<RoomEntry> entries;
  for (const auto* const who : {"a", "b", "c", "d"}) entries.push_back(room.enter(who).get());
  const auto comes_inside = [&](std::size_t entry, const std::string& who) {
    return comes_true([&] {
      const auto place = room.state(entries[entry].ticket, who).get();
      return place && place->state == PlaceState::inside;
    });
  };
  EXPECT_TRUE(comes_inside(0, "a"));
  for (int i = 0; i < 3; ++i) (void)room.status().get();  // the others are called, and do not come
  (void)room.leave(entries[2].ticket, "c").get();
  (void)room.leave(entries[0].ticket, "a").get();
  (void)room.state(entries[1].ticket, "b").get();
  room.pause().get();
  room.resume().get();
  (void)room.draw().get();
  (void)WaitingRoom::load(programs.one, keys, "room").get();
  // Nobody is heard of for the hold.
  EXPECT_TRUE(comes_true([&] { return room.status().get().inside == 0; }));
  (void)room.enter("e").get();
  (void)room.remove().get();
}

void use_sale(Programs& programs) {
  const test::TempDir folder;
  const auto orders = open_order_store("sqlite:" + (folder / "orders.db").string());
  auto sale = Sale::create(programs.one,
                           {.name = "s", .stock = 20, .limit = 2, .number_type = "MT"}, *orders);
  OrderWorker worker{programs.one, sale, *orders};
  for (int i = 0; i < 4; ++i) {
    const auto buyer = std::to_string(i);
    (void)sale.buy({buyer}, {"r"}, 2).get();
    (void)sale.buy({buyer}, {"second"}, 1).get();
    worker.drain();
  }
  (void)sale.find({"1"}, {"r"}).get();
  (void)sale.cancel(*orders, {"1"}, {"r"}, "test");
  (void)sale.cancel(*orders, {"1"}, {"second"}, "test");
  (void)sale.cancel_units(*orders, {"2"}, {"r"}, 1, "key");
  (void)sale.change_stock(*orders, 30);
  (void)sale.status().get();
  (void)sale.flow().get();
  (void)audit(programs.one, sale, *orders);
  programs.one.run({"HSET", "{s}:sale", "store", "another"}).get();
  (void)recover(programs.one, "s", *orders);
  programs.one.run({"DEL", "{s}:sale", "{s}:buyers", "{s}:requests", "{s}:returned"}).get();
  (void)recover(programs.one, "s", *orders);
  worker.drain();
  programs.one.run({"XADD", "{s}:orders", "*", "order", "odd", "buyer", "x"}).get();
  worker.drain();
  for (const auto& letter : sale.dead_letters().get()) (void)sale.revive(letter.id).get();
  worker.drain();
  programs.one.run({"XGROUP", "DESTROY", "{s}:orders", "orders"}).get();
  worker.drain();
  (void)sale.buy({"late"}, {"r"}, 1).get();
  programs.one.run({"DEL", "{s}:orders"}).get();
  (void)recover(programs.one, "s", *orders);
  worker.drain();
  programs.one.run({"DEL", "{s}:dead"}).get();
  sale.close(*orders);
  (void)sale.archive(*orders);

  auto buckets = BucketedSale::create(programs.one,
                                      {.name = "b", .stock = 12, .limit = 0, .number_type = "BT"},
                                      {.buckets = 3}, *orders);
  (void)buckets.buy({"ann"}, {"r"}, 7).get();
  (void)buckets.change_stock(*orders, 14);
  programs.one.run({"HDEL", "{b:0}:sale", "moves"}).get();
  (void)recover_buckets(programs.one, "b", *orders);
}

/// The two nodes of the slots of recorded calls.
class Nodes {
 public:
  explicit Nodes(test::ClusterRig& rig) : rig_(rig), clients_{rig.client_of(0), rig.client_of(1)} {}

  /// All keys of the call lie at the source; the slot is under way, and those of `moved` at the
  /// target.
  void set(const RecordedScript& call, std::size_t moved, bool moves) {
    slot_ = std::to_string(call.slot());
    source_ = rig_.master_of_slot(call.slot());
    for (auto& client : clients_) {
      must(client, {"CLUSTER", "SETSLOT", slot_, "STABLE"});
      must(client, {"FLUSHALL"});
    }
    std::size_t place = 0;
    std::vector<const test::Keyspace::value_type*> others;
    for (const auto& key : call.before) {
      if (moves && (moved >> place++ & 1) != 0)
        others.push_back(&key);
      else
        must(source(), {"RESTORE", key.first, key.second.ttl, key.second.dump});
    }
    if (!moves) return;
    must(target(), {"CLUSTER", "SETSLOT", slot_, "IMPORTING", ids_[source_]});
    must(source(), {"CLUSTER", "SETSLOT", slot_, "MIGRATING", ids_[1 - source_]});
    for (const auto* key : others) {
      must(target(), {"ASKING"});
      must(target(), {"RESTORE", key->first, key->second.ttl, key->second.dump});
    }
  }
  Value run(const RecordedScript& call, bool at_target) {
    auto& client = at_target ? target() : source();
    if (at_target) must(client, {"ASKING"});
    const Script& script = call.script->sharded ? *call.script->sharded : *call.script;
    std::vector<std::string> words{"EVAL", std::string{script.text},
                                   std::to_string(call.keys.size())};
    words.insert(words.end(), call.keys.begin(), call.keys.end());
    words.insert(words.end(), call.args.begin(), call.args.end());
    return client.command(words);
  }
  /// What lies where: key to dump.
  std::map<std::string, std::string> keys(bool at_target) {
    auto& client = at_target ? target() : source();
    std::map<std::string, std::string> all;
    const auto names = client.command({"CLUSTER", "GETKEYSINSLOT", slot_, "100"});
    for (const auto& name : names.as_items()) {
      if (at_target) must(client, {"ASKING"});
      const auto dump = client.command({"DUMP", name.as_text()});
      if (dump.is_text()) all[name.as_text()] = dump.as_text();
    }
    return all;
  }

 private:
  static void must(test::PlainClient& client, std::initializer_list<std::string_view> words) {
    const auto reply = client.command(words);
    if (reply.is_error()) throw std::runtime_error{to_string(reply)};
  }
  test::PlainClient& source() { return clients_[source_]; }
  test::PlainClient& target() { return clients_[1 - source_]; }

  test::ClusterRig& rig_;
  std::array<test::PlainClient, 2> clients_;
  const std::array<std::string, 2> ids_{rig_.id_of(0), rig_.id_of(1)};
  std::string slot_;
  std::size_t source_ = 0;
};

/// Numbers of more than one digit are times, tokens and ids.
std::string shape_of(const Value& reply) {
  static const std::regex numbers{"[0-9][0-9]+(\\.[0-9]+)?"};
  return std::regex_replace(to_string(reply), numbers, "#");
}

std::set<std::string> names_of(const std::map<std::string, std::string>& keys) {
  std::set<std::string> names;
  for (const auto& [name, dump] : keys) names.insert(name);
  return names;
}

bool is_refused(const Value& reply) {
  return reply.is_error() && topology::is_refusal_of_script(reply.as_text(), std::nullopt);
}

/// What a call of it does on one server.
struct Done {
  std::string reply;
  bool is_error;
  std::set<std::string> keys;
};

/// Empty: it was refused whole, or done whole. As a client it goes where it is sent.
std::string trouble_of(Nodes& nodes, const RecordedScript& call, const Done& done) {
  const auto here = nodes.keys(false), there = nodes.keys(true);
  auto reply = nodes.run(call, false);
  const bool at_target = is_refused(reply) && reply.as_text().starts_with("ASK ");
  if (at_target) reply = nodes.run(call, true);
  const auto here_after = nodes.keys(false), there_after = nodes.keys(true);
  if (is_refused(reply))
    return here == here_after && there == there_after ? "" : "it was refused, and has written";
  auto all = names_of(here_after);
  for (const auto& name : names_of(there_after))
    if (!all.insert(name).second) return name + " lies at both nodes";
  // A sale knows its store, and this is another.
  const std::string_view script = call.script->name;
  if (at_target && (script.starts_with("sale/") || script == "store/info"))
    return reply.is_error() ? to_string(reply) : "";
  const auto where = at_target ? "at the target" : "at the source";
  if (shape_of(reply) != done.reply)
    return fmt::format("{} it says {}, where one server says {}", where, shape_of(reply),
                       done.reply);
  if (all == done.keys) return "";
  return fmt::format("{} it leaves {} keys, where one server has {}", where, all.size(),
                     done.keys.size());
}

/// The same of a program that does not know of the cluster: a proxy stands before it.
std::string trouble_behind_proxy(Nodes& nodes, Store& store, const RecordedScript& call,
                                 const Done& done) {
  const auto here = nodes.keys(false), there = nodes.keys(true);
  const std::vector<std::string_view> keys{call.keys.begin(), call.keys.end()};
  const std::vector<std::string_view> args{call.args.begin(), call.args.end()};
  std::string reply, failure;
  try {
    reply = shape_of(store.run(*call.script, keys, args).get());
  } catch (const Error& error) {
    failure = error.message();
  }
  const auto here_after = nodes.keys(false), there_after = nodes.keys(true);
  if (failure.contains("timed out")) return "";  // the machine is slow
  if (!failure.empty())
    return here == here_after && there == there_after ? "" : "it has written, and says " + failure;
  const std::string_view script = call.script->name;
  if (script.starts_with("sale/") || script == "store/info" || done.is_error) return "";
  if (reply != done.reply)
    return fmt::format("it says {}, where one server says {}", reply, done.reply);
  auto all = names_of(here_after);
  all.merge(names_of(there_after));
  return all == done.keys ? "" : fmt::format("{} keys, not {}", all.size(), done.keys.size());
}

/// Each share of the keys at the two nodes, or 16 of them by chance.
std::vector<std::size_t> shares_of(const RecordedScript& call) {
  std::vector<std::size_t> shares;
  std::mt19937_64 random{1};
  const auto all = std::size_t{1} << call.before.size();
  for (std::size_t i = 0; i < std::min<std::size_t>(all, 16); ++i)
    shares.push_back(all <= 16 || i == 0 ? i : random() % all);
  return shares;
}

/// Files that scripts include, and scripts of rare trouble: all of these but the last are guarded.
const std::set<std::string> not_played{
    "store/unmoved",       "lock/fair/hand_over", "lock/shared/settle", "sale/drop_recovery",
    "sale/join",           "sale/regroup",        "sale/shut",          "sale/take_again",
    "sale/needs_recovery", "sale/reread",         "sale/take_out",      "server/end_entry"};

/// A refusal takes the proxy all of its `timeout`.
constexpr int behind_proxy_each = 10;

TEST(MovingSlot, D06_EachScriptIsDoneWholeOrRefusedWhole) {
  test::ClusterRig rig{{.masters = 2, .replicas = 0}};
  std::vector<RecordedScript> calls;
  std::set<std::string> seen;
  {
    Programs programs{rig};
    use_exclusively<Mutex>(programs, "mutex");
    use_exclusively<FairMutex>(programs, "fair");
    use_in_turns(programs);
    use_shared(programs);
    use_permits(programs);
    use_latch_and_limiter(programs);
    use_other_locks(programs);
    use_numbers(programs);
    use_cache(programs);
    use_filter(programs);
    use_room(programs);
    use_sale(programs);
    calls = programs.log.calls();
    seen = programs.log.names();
  }
  for (const auto& name : test::all_scripts())
    EXPECT_TRUE(seen.contains(name) || not_played.contains(name)) << "nobody plays " << name;
  Nodes nodes{rig};
  test::ProxyUnderTest proxy{test::PoolLines{
      {"redis: true", "timeout: 15", fmt::format("cluster: [127.0.0.1:{}]", rig.node(0).port())}}};
  const auto behind_proxy = open(fmt::format("redis://127.0.0.1:{}", proxy.port()));
  std::map<std::string, int> troubles;
  int cases = 0, unsound = 0;
  for (const auto& call : calls) {
    nodes.set(call, 0, false);
    const auto reply = nodes.run(call, false);
    const Done done{shape_of(reply), reply.is_error(), names_of(nodes.keys(false))};
    for (const auto moved : shares_of(call)) {
      nodes.set(call, moved, true);
      ++cases;
      auto trouble = trouble_of(nodes, call, done);
      if (trouble.empty() && cases % behind_proxy_each == 0) {
        nodes.set(call, moved, true);
        trouble = trouble_behind_proxy(nodes, *behind_proxy, call, done);
        if (!trouble.empty()) trouble = "proxy: " + trouble;
      }
      unsound += !trouble.empty();
      if (trouble.empty() || troubles[std::string{call.script->name}]++ > 0) continue;
      ADD_FAILURE() << call.script->name << ", " << moved << " of " << call.before.size()
                    << " keys moved (bits): " << trouble;
    }
  }
  fmt::print("{} scripts, {} calls, {} cases, {} unsound\n", seen.size(), calls.size(), cases,
             unsound);
}

}  // namespace
}  // namespace sluice
