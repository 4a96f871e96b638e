/// Permits are conserved: a simulation of processes that acquire, wait, cancel, release and die on
/// a bad line, in virtual time. A failure prints its seed.
#include <array>
#include <list>
#include <random>

#include "lock/semaphore/virtual_semaphore.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds lease = 1s;

/// A process: its own line, and so its own watchdog and inbox.
class Peer {
 public:
  explicit Peer(Store& store)
      : line_(store), semaphore_(std::make_unique<Semaphore>(line_, "desks", options())) {}
  ~Peer() { die(); }

  void ask(std::uint32_t permits, milliseconds wait) {
    guests_.emplace_back(*semaphore_, permits, wait, stop_.get_token());
  }
  /// One hold ends, if there is one.
  void give_back(std::mt19937& dice) {
    for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
      if (guest->waits() || dice() % 2) continue;
      guests_.erase(guest);
      return;
    }
  }
  void be_unlucky(std::string_view call, Fault fault) {
    line_.plan = [call = std::string{call}, fault, armed = true](std::string_view what) mutable {
      return what == call && std::exchange(armed, false) ? fault : Fault::none;
    };
  }
  void let_go() { line_.let_go(); }
  void cancel() {
    stop_.request_stop();
    stop_ = {};
  }
  bool all_answered() const {
    return std::ranges::none_of(guests_, [](const Guest& guest) { return guest.waits(); });
  }
  std::int64_t believes_to_hold() const {
    return std::ranges::count_if(guests_,
                                 [](const Guest& guest) { return guest.in() && *guest.held; });
  }
  Semaphore& semaphore() { return *semaphore_; }

  /// Nothing of it gets through any more.
  void die() {
    line_.plan = [](std::string_view) { return Fault::refused; };
    stop_.request_stop();
    line_.let_go();
    guests_.clear();
    semaphore_.reset();
  }

 private:
  static SemaphoreOptions options() { return {.lease = lease}; }

  test::FaultyStore line_;
  std::unique_ptr<Semaphore> semaphore_;
  std::stop_source stop_;
  std::list<Guest> guests_;
};

constexpr std::array faults{Fault::none,       Fault::reply_lost,  Fault::request_lost,
                            Fault::cut_off,    Fault::doubled,     Fault::refused,
                            Fault::reply_late, Fault::request_late};
constexpr std::array<std::string_view, 3> calls{"lock/semaphore/acquire", "lock/semaphore/release",
                                                "lock/semaphore/renew"};

class Simulation : public VirtualSemaphore {
 protected:
  template <class Set>
  const auto& any(const Set& set) {
    return set[dice_() % set.size()];
  }

  void step() {
    Peer& peer = *any(peers_);
    switch (dice_() % 16) {
      case 0: peer.let_go(); break;
      case 1: peer.cancel(); break;
      case 2: any(peers_)->be_unlucky(any(calls), any(faults)); break;
      case 3: clock_.advance(milliseconds{dice_() % 300}); break;
      case 4: change(); break;
      case 5:
        if (dice_() % 16 == 0) reincarnate();
        break;
      case 6:
      case 7:
      case 8: peer.ask(1 + dice_() % 3, milliseconds{dice_() % 2 * dice_() % 3000}); break;
      default: peer.give_back(dice_);
    }
  }

  /// By a line that is good: what the change was is known.
  void change() {
    if (dice_() % 8 == 0) {
      total_ -= control_.drain().get();
      return;
    }
    const std::int64_t delta = total_ < 4 ? 4 : static_cast<std::int64_t>(dice_() % 5) - 2;
    control_.add_permits(delta).get();
    total_ += delta;
  }

  void reincarnate() {
    auto& place = peers_[dice_() % peers_.size()];
    place.reset();
    place = std::make_unique<Peer>(*store_);
  }

  std::mt19937 dice_;
  Semaphore control_{*store_, "desks"};
  std::int64_t total_ = 8;
  std::vector<std::unique_ptr<Peer>> peers_;
};

TEST_F(Simulation, S01_PermitsAreConserved) {
  constexpr int seeds = test::rounds(20);
  constexpr int steps = 5000;  // of 10^5
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice_.seed(seed);
    store_->run({"FLUSHALL"}).get();
    total_ = 8;
    control_.try_set_permits(8).get();
    for (int i = 0; i < 4; ++i) peers_.push_back(std::make_unique<Peer>(*store_));
    for (int i = 0; i < steps; ++i) {
      step();
      if (i % 16 != 0) continue;
      const Books now = books();
      ASSERT_EQ(now.total(), total_) << "step " << i;
      std::int64_t believed = 0;
      for (const auto& peer : peers_) believed += peer->believes_to_hold();
      ASSERT_LE(believed, now.held) << "step " << i << ": somebody holds what is not there";
    }
    // No waiter is forgotten: with enough for all and a line that works everybody gets in.
    for (const auto& peer : peers_) {
      peer->be_unlucky("nothing", Fault::none);
      peer->let_go();
    }
    control_.add_permits(1'000'000).get();
    total_ += 1'000'000;
    for (int i = 0; i < 20; ++i) clock_.advance(200ms);
    for (const auto& peer : peers_) ASSERT_TRUE(peer->all_answered());
    peers_.clear();  // they die with all they have
    for (int i = 0; i < 6; ++i) clock_.advance(500ms);
    ASSERT_EQ(control_.available().get(), total_);
    ASSERT_EQ(books().held, 0);
  }
}

}  // namespace
}  // namespace sluice
