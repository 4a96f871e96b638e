/// Many that read and write at random, on bad lines, in virtual time: never a writer beside
/// somebody else, and nobody is forgotten.
#include <array>
#include <list>
#include <random>

#include "lock/shared/virtual_shared.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

class RandomSharing : public VirtualShared {
 protected:
  using Dice = std::mt19937;
  static std::size_t roll(Dice& dice, std::size_t sides) { return dice() % sides; }

  /// Some of the time a call goes wrong in one of the ways there are.
  static Fault misfortune(Dice& dice) {
    static constexpr std::array bad{Fault::doubled,      Fault::reply_lost,   Fault::request_lost,
                                    Fault::cut_off,      Fault::request_late, Fault::reply_late,
                                    Fault::request_late, Fault::refused};
    return roll(dice, 8) == 0 ? bad.at(roll(dice, bad.size())) : Fault::none;
  }

  /// Whoever is certain that it is in.
  struct Party {
    std::string owner;
    bool writes;
  };
  static void expect_exclusion(const std::vector<Party>& parties) {
    for (const auto& writer : parties) {
      if (!writer.writes) continue;
      for (const auto& other : parties)
        ASSERT_EQ(other.owner, writer.owner)
            << "beside a writer, " << (other.writes ? "a writer" : "a reader");
    }
  }

  /// A few processes, each with a bad line and an owner that enters again.
  struct Process {
    explicit Process(Store& store, SharedMutexOptions options)
        : line{store}, mutex{line, "prices", std::move(options)} {}
    test::FaultyStore line;
    SharedMutex mutex;
    Owner owner;
  };
};

TEST_F(RandomSharing, NeverAWriterBesideOthersAndNobodyIsForgotten) {
  for (unsigned seed = 1; seed <= test::rounds(200U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice{seed};
    store_->run({"FLUSHALL"}).get();
    std::list<Process> processes;
    for (int i = 0; i < 3; ++i)
      processes.emplace_back(
          *store_, SharedMutexOptions{
                       .lease = 2s,
                       .watchdog = roll(dice, 3) != 0,
                       .preference = roll(dice, 2) ? Preference::writers : Preference::readers,
                       .overtaking = static_cast<std::uint32_t>(roll(dice, 3)),
                       .hand_overs = static_cast<std::uint32_t>(1 + roll(dice, 3))});
    struct Visit {
      std::unique_ptr<Guest> guest;
      bool writes;
    };
    std::list<Visit> visits;
    for (auto& process : processes)
      process.line.plan = [&dice](std::string_view) { return misfortune(dice); };
    for (int step = 0; step < 150; ++step) {
      auto& process = *std::next(processes.begin(), static_cast<int>(roll(dice, 3)));
      const bool owned = roll(dice, 3) == 0;
      const auto wait = std::chrono::milliseconds{roll(dice, 2) * roll(dice, 5000)};
      switch (roll(dice, 10)) {
        case 0:
        case 1:
          visits.push_back({owned ? std::make_unique<Writer>(process.mutex, process.owner, wait)
                                  : std::make_unique<Writer>(process.mutex, wait),
                            true});
          break;
        case 2:
        case 3:
        case 4:
          visits.push_back({owned ? std::make_unique<Reader>(process.mutex, process.owner, wait)
                                  : std::make_unique<Reader>(process.mutex, wait),
                            false});
          break;
        case 5: process.line.let_go(); break;
        case 6:
          if (roll(dice, 4) == 0) process.line.hold_messages();
          if (roll(dice, 4) == 0) process.line.lose_messages();
          if (roll(dice, 2) == 0) process.line.let_messages_go();
          break;
        case 7: clock_.advance(std::chrono::milliseconds{roll(dice, 1500)}); break;
        default:
          if (!visits.empty()) {
            const auto one = std::next(visits.begin(), static_cast<int>(roll(dice, visits.size())));
            if (roll(dice, 3))
              one->guest->leave();
            else
              one->guest->give_up();
            if (!one->guest->waits() && !one->guest->in()) visits.erase(one);
          }
      }
      std::vector<Party> parties;
      for (const auto& visit : visits)
        if (visit.guest->in()) parties.push_back({visit.guest->held->owner().text, visit.writes});
      expect_exclusion(parties);
      if (HasFatalFailure()) return;
    }
    // The lines are good again: whoever waits gets in, in its turn.
    for (auto& process : processes) {
      process.line.plan = [](std::string_view) { return Fault::none; };
      process.line.let_messages_go();
      process.line.let_go();
    }
    for (int round = 0; round < 200; ++round) {
      std::erase_if(visits, [](const Visit& visit) { return !visit.guest->waits(); });
      if (visits.empty()) break;
      clock_.advance(1s);
      for (auto& process : processes) process.line.let_go();
    }
    EXPECT_TRUE(visits.empty()) << visits.size() << " wait for ever";
    visits.clear();
    // And the lock is free, but for what late copies of requests left: that ends with its lease.
    Writer last{here_, 1h};
    for (int round = 0; round < 40 && last.waits(); ++round) clock_.advance(1s);
    ASSERT_TRUE(last.held) << "somebody is in who has gone";
    last.leave();
    clock_.advance(5s);
    ASSERT_TRUE(here_.try_acquire_shared().get());
    expect_nothing_left();
    if (HasFailure()) return;
  }
}

TEST_F(RandomSharing, W04_RandomCancellationLeavesNoRenewedKey) {
  Dice dice{20260101};
  for (int round = 0; round < test::rounds(1000); ++round) {
    {
      SharedMutex mutex{line_, "prices", {.lease = 300ms}};
      std::optional<Held> held;
      if (roll(dice, 3) == 0) held = mutex.try_acquire().get();
      if (roll(dice, 3) == 0 && !held) held = mutex.try_acquire_shared().get();
      Reader reader{mutex, 1h};
      Writer writer{mutex, 1h};
      Reader another{mutex, 1h};
      clock_.advance(std::chrono::milliseconds{roll(dice, 200)});
      const auto when = roll(dice, 4);
      if (when == 0) held.reset();
      writer.give_up();
      if (when == 1) held.reset();
      clock_.advance(std::chrono::milliseconds{roll(dice, 200)});
      reader.give_up();
      if (when == 2) held.reset();
      another.give_up();
      held.reset();
      ASSERT_FALSE(reader.waits() || writer.waits() || another.waits());
    }
    clock_.advance(300ms);
    ASSERT_FALSE(exists("prices")) << "round " << round;
    ASSERT_EQ(length("sluice_rw_read_line:{prices}") + length("sluice_rw_write_line:{prices}"), 0);
  }
  clock_.advance(26h);
  EXPECT_EQ(clock_.pending_timers(), 0U) << "nor a key that ends";
}

}  // namespace
}  // namespace sluice
