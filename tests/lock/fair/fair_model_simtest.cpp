/// Many who come, wait, give up, leave, stand still and lose messages, ours and Redisson's, by a
/// seed: one at a time, in the order of the queue, and nobody is forgotten.
#include <random>
#include <set>

#include "lock/fair/virtual_fair.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

class FairModel : public VirtualFair {
 protected:
  struct Guest {
    Guest(FairMutex& mutex, std::chrono::milliseconds wait)
        : visitor(mutex, wait, stop.get_token()) {}
    std::stop_source stop;  // before the visitor
    Visitor visitor;
  };

  /// A process of ours, whose line loses, doubles and delays.
  void make_line_bad(test::FaultyStore& line) {
    line.plan = [this](std::string_view call) {
      if (call == "listen") return Fault::none;
      switch (dice_() % 40) {
        case 0: return Fault::doubled;
        case 1: return Fault::reply_lost;
        case 2: return Fault::request_late;
        case 3: return Fault::reply_late;
        default: return Fault::none;
      }
    };
  }
  /// Whom the server believes to be in.
  std::string holder() {
    const Value fields = store_->run({"HKEYS", "stock"}).get();
    for (const Value& field : fields.as_items())
      if (!field.as_text().starts_with("sluice:")) return field.as_text();
    return {};
  }
  std::vector<std::string> owners_with_tickets() {
    const Value fields = store_->run({"HKEYS", tickets_}).get();
    std::vector<std::string> owners;
    for (const Value& owner : fields.as_items()) owners.push_back(owner.as_text());
    return owners;
  }
  std::string first_ticket() {
    const auto all = queue();
    return all.empty() ? std::string{} : field(tickets_, all.front());
  }
  /// Whether the process of the first waiter is told that it has lost its places.
  std::pair<Listener, std::shared_ptr<bool>> hear_of_the_first_process() {
    auto gone = std::make_shared<bool>(false);
    const std::string ticket = first_ticket();
    const auto at = ticket.find("sluice:inbox:");
    if (at == std::string::npos) return {Listener{}, gone};
    const std::string inbox = ticket.substr(at, ticket.find(' ', at) - at);
    return {store_->listen(inbox, [gone](const Message& said) { *gone |= said.payload == "gone"; })
                .get(),
            gone};
  }
  std::size_t inside() const {
    return static_cast<std::size_t>(std::ranges::count_if(guests_, [](const auto& guest) {
      return guest.visitor.in() && guest.visitor.held->valid();
    }));
  }
  void step(std::deque<FairProcess>& processes) {
    auto& process = processes[dice_() % processes.size()];
    switch (dice_() % 8) {
      case 0:
      case 1:
        if (guests_.size() < 20) guests_.emplace_back(process.mutex, 10min);
        break;
      case 2: std::erase_if(guests_, [](auto& guest) { return guest.visitor.in(); }); break;
      case 3:
        if (!guests_.empty())
          std::next(guests_.begin(), dice_() % guests_.size())->stop.request_stop();
        break;
      case 4: process.line.let_go(); break;
      case 5:
        if (java_acquire(java_).is_null()) java_in_ = true;
        break;
      case 6:
        if (std::exchange(java_in_, false)) java_release(java_);
        break;
      default: clock_.advance(std::chrono::milliseconds{dice_() % 3000});
    }
    std::erase_if(guests_,
                  [](auto& guest) { return !guest.visitor.waits() && !guest.visitor.in(); });
  }
  void expect_order_of_tokens() {
    for (const auto& guest : guests_) {
      if (!guest.visitor.in() || !guest.visitor.held->valid()) continue;
      EXPECT_GE(guest.visitor.held->token(), highest_);
      highest_ = std::max(highest_, guest.visitor.held->token());
    }
  }

  std::mt19937 dice_;
  std::list<Guest> guests_;
  FencingToken highest_;
  bool java_in_ = false;
};

TEST_F(FairModel, OneAtATimeAndNobodyIsForgotten) {
  for (unsigned seed = 1; seed <= test::rounds(100U); ++seed) {
    dice_.seed(seed);
    std::deque<FairProcess> processes;
    for (int i = 0; i < 3; ++i) {
      processes.emplace_back(*store_);
      make_line_bad(processes.back().line);
    }
    std::set<std::string> let_in;
    for (int i = 0; i < 150; ++i) {
      const auto before = queue();
      const auto known = owners_with_tickets();
      const auto ticket = first_ticket();
      const auto holder_before = holder();
      const auto gone = hear_of_the_first_process();
      step(processes);
      if (const auto inside_now = holder(); !inside_now.empty() && inside_now != holder_before) {
        // One whose process was taken for dead, since its look was lost, stands there again; and
        // one that had its turn by a request that it has given up, by the next. One that Redisson
        // has dropped returns before those that came after it, and so does one that was let in by a
        // message that it did not hear.
        const bool is_again = !let_in.insert(inside_now).second;
        const bool returned = std::ranges::find(before, inside_now) == before.end() &&
                              (is_again || std::ranges::find(known, inside_now) != known.end());
        ASSERT_FALSE(!before.empty() && !queue().empty() && before.front() == queue().front() &&
                     !*gone.second && ticket == first_ticket() && inside_now != before.front() &&
                     !returned)
            << "seed " << seed << ", step " << i << ": somebody got past the first in the queue";
      }
      // one of ours at most, and none while Redisson is in
      ASSERT_LE(inside(), 1U) << "seed " << seed << ", step " << i;
      expect_order_of_tokens();
    }
    // The line is good again: whoever waits gets in, one after another.
    if (std::exchange(java_in_, false)) java_release(java_);
    java_give_up(java_);
    for (auto& process : processes) {
      process.line.plan = [](std::string_view) { return Fault::none; };
      process.line.let_go();
    }
    for (int rounds = 0; rounds < 60 && !guests_.empty(); ++rounds) {
      std::erase_if(guests_, [](auto& guest) { return !guest.visitor.waits(); });
      clock_.advance(2s);
    }
    ASSERT_TRUE(guests_.empty()) << "seed " << seed;
    clock_.advance(31s);
    ASSERT_FALSE(exists("stock")) << "seed " << seed;
    ASSERT_FALSE(exists(queue_)) << "seed " << seed;
    ASSERT_FALSE(exists(deadlines_)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
