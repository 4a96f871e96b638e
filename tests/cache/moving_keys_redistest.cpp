// Near caches in a cluster while a slot gets another master, also one that had no slots before:
// what is read at any stage of the move is not given after another process has changed it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_slot.hpp"
#include "cache/tracked_cache.hpp"
#include "redis/cluster_store.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

template <class Condition>
bool comes_true_within(std::chrono::milliseconds patience, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  return test::comes_true([&] { return condition() || std::chrono::steady_clock::now() >= end; }) &&
         condition();
}

/// A slot on its way from the first node to another, stage by stage.
class Move {
 public:
  static constexpr int stages = 6;

  Move(test::ClusterRig& rig, int slot, std::size_t to)
      : rig_(rig), slot_(slot), to_(to), other_(3 - to) {}
  Move(const Move&) = delete;
  Move& operator=(const Move&) = delete;
  ~Move() {
    advance(stages - 1);
    rig_.end_move(slot_, 0, to_);
    rig_.move_slot(slot_, to_, 0);
  }

  void advance(int stage) {
    for (; stage_ < stage; ++stage_) step();
  }

 private:
  void step() {
    switch (stage_) {
      case 0: return rig_.begin_move(slot_, 0, to_);
      case 1: return rig_.move_keys(slot_, 0, to_);
      case 2: return tell(to_, to_);
      case 3: return tell(0, to_);
      default: return tell(other_, to_);
    }
  }
  void tell(std::size_t node, std::size_t owner) {
    EXPECT_FALSE(
        rig_.client_of(node)
            .command({"CLUSTER", "SETSLOT", std::to_string(slot_), "NODE", rig_.id_of(owner)})
            .is_error());
  }

  test::ClusterRig& rig_;
  const int slot_;
  const std::size_t to_, other_;
  int stage_ = 0;
};

/// Three masters, of which the last has given its slots to the first.
class MovingKeys : public testing::Test {
 protected:
  static constexpr std::size_t with_slots = 1, without_slots = 2;

  MovingKeys() {
    auto last = rig.client_of(without_slots);
    const auto all = last.command({"CLUSTER", "SLOTS"});
    std::string first, end;
    for (const auto& range : all.as_items())
      if (range.as_items().at(2).as_items().at(1).as_integer() == rig.node(without_slots).port()) {
        first = std::to_string(range.as_items().at(0).as_integer());
        end = std::to_string(range.as_items().at(1).as_integer());
      }
    for (const std::size_t node : {without_slots, with_slots, 0UZ})
      EXPECT_FALSE(
          rig.client_of(node).command({"CLUSTER", "DELSLOTSRANGE", first, end}).is_error());
    EXPECT_FALSE(rig.client_of(0).command({"CLUSTER", "ADDSLOTSRANGE", first, end}).is_error());
    rig.client_of(0).command({"CLUSTER", "BUMPEPOCH"});
    EXPECT_TRUE(test::comes_true([&] { return agree(); }));
  }

  bool agree() {
    const auto map_of = [&](std::size_t node) {
      return to_string(rig.client_of(node).command({"CLUSTER", "SLOTS"}));
    };
    return rig.is_whole() && map_of(0) == map_of(1) && map_of(0) == map_of(2);
  }
  std::unique_ptr<Store> open() {
    redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
    options.seeds.push_back({.host = "127.0.0.1", .port = rig.node(0).port(), .unix_path = {}});
    options.node.connect_timeout = options.node.command_timeout = 30s;
    return redis::open_cluster(std::move(options));
  }

  test::ClusterRig rig{{.masters = 3, .replicas = 0}};
};

constexpr std::string_view get_text = "return redis.call('GET', KEYS[1])";

struct Reading {
  std::string_view name;
  std::function<void(Store&, std::string_view key)> read;
};

const std::vector<Reading>& readings() {
  static const std::vector<Reading> all{
      {"command",
       [](Store& store, std::string_view key) {
         store.run({"GET", key}).get();
       }},
      {"script",
       [](Store& store, std::string_view key) {
         store.run({"EVAL", get_text, "1", key}).get();
       }},
      {"batch",
       [](Store& store, std::string_view key) {
         Batch batch;
         batch.add({"GET", key}).add({"EXISTS", key});
         store.run(std::move(batch)).get();
       }},
  };
  return all;
}

/// A process that has a value near, if it may.
class Reader {
 public:
  Reader(std::unique_ptr<Store> store, std::string key, const Reading& reading)
      : store_(std::move(store)), key_(std::move(key)), reading_(reading) {
    EXPECT_TRUE(test::comes_true([&] { return near_.cache().is_open(); }));
  }
  bool has() { return near_.cache().find(key_, store_->clock().steady()).has_value(); }
  bool read() {
    if (has()) return true;
    const bool is_open = near_.cache().is_open();
    const auto fill = near_.cache().begin_fill(key_, store_->clock().steady());
    reading_.read(*store_, key_);
    return is_open && near_.cache().fill(fill, key_, {}, 1, SteadyTime::max());
  }

 private:
  const std::unique_ptr<Store> store_;
  const std::string key_;
  const Reading& reading_;
  cache::TrackedCache near_{*store_, "{"};
};

TEST_F(MovingKeys, D17_WhatIsReadAtAnyStageOfAMoveIsNotGivenAfterAChange) {
  const std::string key = "{a}";
  ASSERT_EQ(rig.master_of(key), 0U);
  int rows = 0, kept = 0;
  for (const auto& reading : readings())
    for (const auto to : {without_slots, with_slots})
      for (int read_at = 0; read_at < Move::stages; ++read_at)
        for (int changed_at = read_at; changed_at < Move::stages; ++changed_at) {
          rig.client_of(0).command({"SET", key, "old"});
          Move move{rig, hash_slot(key), to};
          const auto writer = open();
          Reader reader{open(), key, reading};
          move.advance(read_at);
          kept += comes_true_within(5s, [&] { return reader.read(); });
          move.advance(changed_at);
          writer->run({"SET", key, "new"}).get();
          EXPECT_TRUE(comes_true_within(5s, [&] { return !reader.has(); }))
              << fmt::format("{} at stage {} of a move to {}, changed at stage {}", reading.name,
                             read_at, to, changed_at);
          ++rows;
        }
  EXPECT_EQ(kept, rows) << "a near cache comes back during each move";
}

}  // namespace
}  // namespace sluice
