/// Replicas that take over without asking anybody, and masters that refuse WAIT, while durable
/// locks are held and writes are acknowledged by a replica. SLUICE_LONG: so many rounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/hash_slot.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/shared_mutex.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;

constexpr Durability on_its_replica{.replicas = 1, .within = 300ms};

int takeover_rounds(int usual) {
  const auto* const given = std::getenv("SLUICE_LONG");
  return given ? std::stoi(given) : usual;
}

class Takeover : public testing::Test {
 protected:
  /// One name of each master.
  static constexpr std::array<const char*, 3> names{"a", "b", "c"};

  /// By a replica that stands still `meanwhile`, and may not have read since what its master said.
  void take_over(const std::string& name, const std::function<void()>& meanwhile) {
    const auto replica = rig_.replica_of(rig_.master_of(name));
    auto client = rig_.client_of(replica);
    rig_.node(replica).stop();
    client.send("CLUSTER FAILOVER TAKEOVER\r\n");
    meanwhile();
    rig_.node(replica).cont();
    const auto reply = client.read();
    ASSERT_FALSE(reply.is_error()) << to_string(reply);
    // It may have stood still for so long that its master is elected again.
    ASSERT_TRUE(comes_true([&] { return rig_.is_whole(); }));
  }

  std::unique_ptr<Store> open_patiently() {
    std::unique_ptr<Store> store;
    comes_true([&] {
      try {
        store = open(rig_.url());
      } catch (const Error&) {  // a node is no master any more
      }
      return store != nullptr;
    });
    return store;
  }

  test::ClusterRig rig_;
};

/// When holders of one lock were certain that they hold it.
class CertainTimes {
 public:
  void add(SteadyTime begin, SteadyTime end) {
    const std::lock_guard lock{mutex_};
    times_.emplace_back(begin, end);
  }
  std::size_t size() const { return times_.size(); }
  std::size_t overlaps() {
    std::ranges::sort(times_);
    std::size_t many = 0;
    SteadyTime last{};
    for (const auto& [begin, end] : times_) {
      many += begin < last;
      last = std::max(last, end);
    }
    return many;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<SteadyTime, SteadyTime>> times_;
};

class TakeoverOfLocks : public Takeover {
 protected:
  struct Place {
    CertainTimes times;
    std::atomic<int> tries{0};
    std::atomic<int> entries{0};
  };

  /// Comes again and again, and stays for a moment or over a whole round.
  template <class Lock>
  void visit(const std::string& name, Place& place, const std::stop_token& stop) {
    const auto store = open_patiently();
    Lock lock{*store, name, {.lease = 1s, .durability = on_its_replica}};
    for (int i = 0; !stop.stop_requested(); ++i) try {
        const auto held = lock.try_acquire(50ms).get();
        ++place.tries;
        if (held) stay(*store, *held, place, i % 4 == 0, stop);
      } catch (const Error&) {
        ++place.tries;
      }
  }

  template <class Lock>
  std::jthread visitor(std::size_t place) {
    return std::jthread{[this, place](const std::stop_token& stop) {
      visit<Lock>(names.at(place), places_.at(place), stop);
    }};
  }

  void stay(Store& store, const Held& held, Place& place, bool for_long,
            const std::stop_token& stop) {
    const auto begin = store.clock().steady();
    const auto until = round_.load() + 1;
    auto end = begin;
    ++place.entries;
    for (int i = 0; i < 3 || (for_long && round_ < until && !stop.stop_requested()); ++i) {
      try {
        store.run({"EXISTS", "nothing"}).get();
      } catch (const Error&) {  // the hold is what matters
      }
      const auto now = store.clock().steady();
      if (!held.valid()) break;
      end = now;
    }
    place.times.add(begin, end);
  }

  static bool passes(std::atomic<int>& count, int more) {
    return comes_true([&count, until = count + more] { return count >= until; });
  }

  void refuse_wait(std::size_t place) {
    auto client = rig_.client_of(rig_.master_of(names.at(place)));
    client.command({"ACL", "SETUSER", "default", "-wait"});
    EXPECT_TRUE(passes(places_.at(place).tries, 3));
    client.command({"ACL", "SETUSER", "default", "+wait"});
  }

  std::array<Place, 3> places_;
  std::atomic<int> round_{0};
};

TEST_F(TakeoverOfLocks, Chaos_DurableHoldsNeverOverlapWhereMastersRefuseWaitOrAreReplaced) {
  std::vector<std::jthread> visitors;
  for (int i = 0; i < 2; ++i) {
    visitors.push_back(visitor<Mutex>(0));
    visitors.push_back(visitor<FairMutex>(1));
    visitors.push_back(visitor<SharedMutex>(2));
  }
  const int rounds = takeover_rounds(6);
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    const auto place = static_cast<std::size_t>(i / 2) % names.size();
    ASSERT_TRUE(passes(places_.at(place).entries, 1)) << "before round " << i;
    if (i % 2 == 0)
      refuse_wait(place);
    else
      take_over(names.at(place), [&] { passes(places_.at(place).tries, i % 4); });
    ++round_;
  }
  for (auto& visitor : visitors) visitor.request_stop();
  visitors.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::cout << fmt::format("{} rounds: {} holds of '{}', {} overlap\n", rounds,
                             places_.at(i).times.size(), names.at(i),
                             places_.at(i).times.overlaps());
    EXPECT_EQ(places_.at(i).times.overlaps(), 0U);
  }
}

class TakeoverOfWrites : public Takeover {
 protected:
  struct Place {
    std::mutex mutex;
    std::vector<std::string> fields;
    std::vector<std::int64_t> numbers;
    std::atomic<int> writes{0};
  };

  void write(const std::string& name, const std::string& who, Place& place,
             const std::stop_token& stop) {
    const auto store = open_patiently();
    Series series{*store, name, {.digits = 15, .durability = on_its_replica}};
    for (int i = 0; !stop.stop_requested(); ++i) try {
        const auto field = fmt::format("{} {}", who, i);
        const bool is_set = set(*store, hash_of(name), field);
        const auto number = series.next().get();
        const std::lock_guard lock{place.mutex};
        if (is_set) place.fields.push_back(field);
        if (number) place.numbers.push_back(number->sequence);
        ++place.writes;
      } catch (const Error&) {  // it is not acknowledged
      }
  }

  /// True: a replica has it.
  static bool set(Store& store, const std::string& hash, const std::string& field) {
    Batch batch;
    batch.add({"HSET", hash, field, "1"});
    batch.add({"WAIT", "1", "300"});
    const auto replies = store.run(std::move(batch)).get();
    return !replies.at(0).is_error() && replies.at(1) == Value::integer(1);
  }
  static std::string hash_of(const std::string& name) { return "{" + name + "}:written"; }

  /// How many writes are not there that a replica had.
  std::size_t lost(const std::string& name, const Place& place) {
    const auto store = open_patiently();
    std::set<std::string> there;
    const auto fields = store->run({"HKEYS", hash_of(name)}).get();
    for (const auto& field : fields.as_items()) there.insert(field.as_text());
    const auto is_lost = [&](const std::string& field) { return !there.contains(field); };
    return static_cast<std::size_t>(std::ranges::count_if(place.fields, is_lost));
  }

  std::array<Place, 3> places_;
};

/// What is not there any more is asked of the other node, behind an ASKING.
TEST_F(TakeoverOfWrites, Chaos_AWriteWithWaitIsDoneWhileItsSlotMoves) {
  const auto slot = hash_slot("a");
  const auto from = rig_.master_of("a");
  const auto to = rig_.master_of("c");
  const auto store = open_patiently();
  const auto is_done = [&](const std::string& field) {
    return comes_true([&] { return set(*store, hash_of("a"), field); });
  };
  rig_.begin_move(slot, from, to);
  EXPECT_TRUE(is_done("before its key is there"));
  rig_.move_keys(slot, from, to);
  EXPECT_TRUE(is_done("behind it"));
  rig_.end_move(slot, from, to);
  EXPECT_TRUE(is_done("when the slot has moved"));
}

TEST_F(TakeoverOfWrites, Chaos_NoWriteIsLostThatAReplicaHadAndNoNumberIsGivenTwice) {
  std::vector<std::jthread> writers;
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const auto* const who : {"ann", "bob"})
      writers.emplace_back([this, i, who](const std::stop_token& stop) {
        write(names.at(i), who, places_.at(i), stop);
      });
  const int rounds = takeover_rounds(3);
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    const auto place = static_cast<std::size_t>(i) % names.size();
    auto& writes = places_.at(place).writes;
    ASSERT_TRUE(comes_true([&, until = writes + 5] { return writes >= until; }));
    take_over(names.at(place), [] {});
  }
  for (auto& writer : writers) writer.request_stop();
  writers.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& fields = places_.at(i).fields;
    const auto& numbers = places_.at(i).numbers;
    const auto missing = lost(names.at(i), places_.at(i));
    const std::set<std::int64_t> once(numbers.begin(), numbers.end());
    std::cout << fmt::format(
        "{} takeovers: of {} writes {} are lost, of {} numbers {} came again\n", rounds,
        fields.size(), missing, numbers.size(), numbers.size() - once.size());
    EXPECT_EQ(missing, 0U);
    EXPECT_EQ(once.size(), numbers.size());
    EXPECT_FALSE(numbers.empty());
  }
}

}  // namespace
}  // namespace sluice
