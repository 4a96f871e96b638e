/// Who was in, and when: a record that threads and processes write, and a checker that says what in
/// it cannot be.
///
/// Each participant writes down what it is certain of: `enter` after it was let in, `leave` before
/// it asks to leave, so that two who overlap in the record did overlap. The order of the record is
/// the order of the writes. A record is about one lock, semaphore or read-write lock.
///
///     Recorder record{path, "worker 1"};           // in each thread or process
///     record.enter(held.token().value);
///     record.leave();
///     ...
///     const auto verdict = check(read_history(path), {.fifo = true});
///     EXPECT_TRUE(verdict.ok()) << verdict.text();
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

struct Event {
  enum class Kind : std::uint8_t {
    wait,          ///< stands in the queue from here on
    give_up,       ///< left the queue
    enter,         ///< exclusive; `number` is the fencing token, 0: it has none
    leave,         ///< one entry less
    enter_shared,  ///< among readers
    leave_shared,
    acquire,  ///< `number` permits
    release,  ///< `number` permits
    gone,     ///< whatever it held or waited for is over: killed, or told that its hold is lost
  };
  Kind kind = Kind::wait;
  std::string who;
  std::uint64_t number = 0;
  std::chrono::nanoseconds at{};  ///< of a clock that all who record share

  friend bool operator==(const Event&, const Event&) = default;
};

std::string_view to_string(Event::Kind kind) noexcept;
/// One line of a record, with its line end: "1204000000 worker-1 enter 17".
std::string to_line(const Event& event);
/// Throws std::runtime_error, naming the line, for one that to_line() does not write.
Event event_of(std::string_view line);
std::vector<Event> read_history(const std::filesystem::path& path);

/// Appends to a file, one write(2) for each event, so that lines of many processes stay whole.
/// Threads: any. Throws std::system_error when it cannot write.
class Recorder {
 public:
  /// Spaces in `who` become dashes.
  Recorder(const std::filesystem::path& path, std::string who);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void wait() { note(Event::Kind::wait); }
  void give_up() { note(Event::Kind::give_up); }
  void enter(std::uint64_t token = 0) { note(Event::Kind::enter, token); }
  void leave() { note(Event::Kind::leave); }
  void enter_shared() { note(Event::Kind::enter_shared); }
  void leave_shared() { note(Event::Kind::leave_shared); }
  void acquire(std::uint64_t permits = 1) { note(Event::Kind::acquire, permits); }
  void release(std::uint64_t permits = 1) { note(Event::Kind::release, permits); }
  void gone() { note(Event::Kind::gone); }

 private:
  void note(Event::Kind kind, std::uint64_t number = 0);

  std::string who_;
  int file_ = -1;
};

/// What a history has to obey. What is not asked for is not checked; exclusion always is.
struct Rules {
  bool tokens_rise = true;                 ///< of first entries, where they have one
  std::optional<std::uint64_t> permits{};  ///< how many there are in all
  bool fifo = false;                       ///< who waits longest is next
  std::optional<std::size_t> overtakes{};  ///< how often a waiter may be overtaken
  std::optional<std::chrono::nanoseconds> longest_wait{};
  bool complete = true;  ///< in the end nobody is in and nobody waits
};

struct Violation {
  enum class Kind : std::uint8_t {
    two_exclusive_holders,
    shared_beside_exclusive,
    token_not_rising,
    permits_above_total,
    leave_without_enter,
    fifo_violated,
    starved,     ///< overtaken too often, or waited too long
    never_left,  ///< still in at the end
    forgotten,   ///< still waiting at the end
  };
  Kind kind;
  std::size_t event;  ///< its number in the history, from 0
  std::string text;   ///< one sentence: who, and beside whom
};

std::string_view to_string(Violation::Kind kind) noexcept;

struct Verdict {
  std::vector<Violation> violations;  ///< at most `most`
  std::size_t entries = 0;            ///< of any kind

  static constexpr std::size_t most = 100;

  bool ok() const noexcept { return violations.empty(); }
  bool has(Violation::Kind kind) const noexcept;
  /// One line for each violation; empty when there is none.
  std::string text() const;
};

/// Looks at events as they come; for simulations, which want to stop at the first violation.
class HistoryChecker {
 public:
  explicit HistoryChecker(Rules rules = {}) : rules_(rules) {}

  void see(const Event& event);
  /// Nothing follows.
  void finish();
  const Verdict& verdict() const noexcept { return verdict_; }

 private:
  friend struct EventTable;

  struct Waiting {
    std::uint64_t arrival;
    std::chrono::nanoseconds since;
    std::size_t overtaken = 0;
  };
  struct Party {
    std::size_t exclusive = 0;
    std::size_t shared = 0;
    std::uint64_t permits = 0;
    std::optional<Waiting> waiting{};
  };

  void wait(const Event& event);
  void give_up(const Event& event);
  void enter(const Event& event);
  void leave(const Event& event);
  void enter_shared(const Event& event);
  void leave_shared(const Event& event);
  void acquire(const Event& event);
  void release(const Event& event);
  void gone(const Event& event);

  void arrive(const Event& event);
  void end_wait(const Event& event, const Waiting& waiting);
  void leave_one(const Event& event, std::size_t Party::*entries);
  void violate(Violation::Kind kind, std::string text);

  Rules rules_;
  Verdict verdict_;
  std::size_t seen_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t last_token_ = 0;
  std::chrono::nanoseconds last_time_{};
  std::map<std::string, Party> parties_;  // who holds or waits
};

Verdict check(std::span<const Event> history, const Rules& rules = {});

}  // namespace sluice::test
