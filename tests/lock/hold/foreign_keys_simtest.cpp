// In the midst of the life of a lock its key becomes something else: nothing of ours writes there.
#include <algorithm>
#include <functional>
#include <list>
#include <random>

#include "lock/virtual_lock.hpp"

namespace sluice {
namespace {

using Words_ = std::vector<std::string>;

/// An acquire in the background, which may be given up, and its hold.
class Attempt {
 public:
  using Enter = std::function<Task<std::optional<Held>>(std::stop_token)>;
  explicit Attempt(const Enter& enter) {
    spawn(wait_for(enter(stop_.get_token())), [](const std::exception_ptr&) {});
  }
  ~Attempt() { give_up(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void give_up() { stop_.request_stop(); }
  void leave() { held_.reset(); }

 private:
  Task<void> wait_for(Task<std::optional<Held>> entering) { held_ = co_await entering; }

  std::stop_source stop_;
  std::optional<Held> held_;
};

/// A kind of lock, as two processes use it, and what may stand under its key that is not its own.
struct Subject {
  std::string_view name;
  std::function<Task<std::optional<Held>>(std::size_t process, bool shared, const Owner* owner,
                                          std::stop_token)>
      enter;
  std::function<void(std::size_t process)> look;
  std::vector<Words_> foreign;
};

class ForeignKeys : public VirtualLock {
 protected:
  static constexpr std::string_view key = "prices";
  static constexpr std::chrono::milliseconds patience = 20s;

  const std::vector<Words_> no_locks{{"SET", "prices", "Ann"},
                                     {"RPUSH", "prices", "Ann"},
                                     {"ZADD", "prices", "1", "Ann"},
                                     {"HSET", "prices", "name", "Ann", "age", "42"},
                                     {"HSET", "prices", "mode", "dark"}};

  template <class Lock>
  Subject exclusive(std::string_view name) {
    const auto locks = std::make_shared<std::vector<std::unique_ptr<Lock>>>();
    for (auto* store : {&line_, &far_})
      locks->push_back(std::make_unique<Lock>(*store, std::string{key}));
    return {name,
            [locks](std::size_t process, bool, const Owner* owner, std::stop_token stop) {
              Lock& lock = *(*locks)[process];
              return owner ? lock.try_acquire(*owner, patience, std::move(stop))
                           : lock.try_acquire(patience, std::move(stop));
            },
            [locks](std::size_t process) { (void)(*locks)[process]->info().get(); }, no_locks};
  }
  Subject shared() {
    Subject subject = exclusive<SharedMutex>("SharedMutex");
    const auto locks = std::make_shared<std::vector<std::unique_ptr<SharedMutex>>>();
    for (auto* store : {&line_, &far_})
      locks->push_back(std::make_unique<SharedMutex>(*store, std::string{key}));
    subject.enter = [locks](std::size_t process, bool reads, const Owner* owner,
                            std::stop_token stop) {
      SharedMutex& lock = *(*locks)[process];
      if (!owner)
        return reads ? lock.try_acquire_shared(patience, std::move(stop))
                     : lock.try_acquire(patience, std::move(stop));
      return reads ? lock.try_acquire_shared(*owner, patience, std::move(stop))
                   : lock.try_acquire(*owner, patience, std::move(stop));
    };
    // A Mutex that took the key, as it was free for a moment.
    subject.foreign.push_back({"HSET", "prices", "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab:17", "1",
                               "sluice:request", "another", "sluice:holder", "till 3"});
    return subject;
  }
  Subject semaphore() {
    const auto all = std::make_shared<std::vector<std::unique_ptr<Semaphore>>>();
    for (auto* store : {&line_, &far_})
      all->push_back(std::make_unique<Semaphore>(*store, std::string{key}));
    return {"Semaphore",
            [all](std::size_t process, bool two, const Owner*, std::stop_token stop) {
              return (*all)[process]->try_acquire(two ? 2 : 1, patience, std::move(stop));
            },
            [all](std::size_t process) { (void)(*all)[process]->info().get(); }, no_locks};
  }

  std::string state() { return contents(key) + " " + std::to_string(ttl(key).count()); }

  /// The name of the first thing done that changed what is not ours; empty: none did.
  std::string history(const Subject& subject, unsigned seed) {
    std::mt19937 random{seed};
    const auto below = [&](unsigned many) { return random() % many; };
    const Owner owner;
    std::list<Attempt> attempts;
    std::string before, done;
    const unsigned turn_of_change = 4 + below(12);
    for (unsigned turn = 0; turn < turn_of_change + 10; ++turn) {
      if (turn == turn_of_change) {
        store_->run({"DEL", key}).get();
        const auto& words = subject.foreign[below(subject.foreign.size())];
        const std::vector<std::string_view> command{words.begin(), words.end()};
        store_->run(Words{command}).get();
        before = state();
        done.clear();
      }
      const std::size_t process = below(2);
      const auto one = std::next(attempts.begin(), below(attempts.size() + 1));
      switch (below(6)) {
        case 0:
        case 1: {
          const bool shared = below(2) == 0;
          const Owner* const whose = below(4) == 0 ? &owner : nullptr;
          attempts.emplace_back(
              [&](std::stop_token stop) { return subject.enter(process, shared, whose, stop); });
          done += " enter";
          break;
        }
        case 2:
          if (one != attempts.end()) one->give_up(), done += " give_up";
          break;
        case 3:
          if (one != attempts.end()) one->leave(), done += " leave";
          break;
        case 4:
          clock_.advance(std::chrono::milliseconds{below(12'000)});
          done += " wait";
          break;
        case 5: try { subject.look(process);
          } catch (const Error&) {  // it says that there is no such lock
          }
          done += " look";
          break;
      }
      if (!before.empty() && state() != before) return done + ": " + before + " -> " + state();
    }
    attempts.clear();
    if (state() != before) return done + " end: " + before + " -> " + state();
    return {};
  }

  void live(const Subject& subject) {
    for (unsigned seed = 1; seed <= 400; ++seed) {
      store_->run({"FLUSHALL"}).get();
      if (subject.name == "Semaphore") store_->run({"SET", key, "2"}).get();
      const std::string broken = history(subject, seed);
      ASSERT_EQ(broken, "") << subject.name << ", seed " << seed;
    }
  }
};

TEST_F(ForeignKeys, LK02_NothingIsWrittenToTheKeyOfAnother_Mutex) {
  live(exclusive<Mutex>("Mutex"));
}
TEST_F(ForeignKeys, LK02_NothingIsWrittenToTheKeyOfAnother_FairMutex) {
  live(exclusive<FairMutex>("FairMutex"));
}
TEST_F(ForeignKeys, LK02_NothingIsWrittenToTheKeyOfAnother_SharedMutex) { live(shared()); }
TEST_F(ForeignKeys, LK02_NothingIsWrittenToTheKeyOfAnother_Semaphore) { live(semaphore()); }

}  // namespace
}  // namespace sluice
