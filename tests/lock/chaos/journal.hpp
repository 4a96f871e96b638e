/// What processes that use locks write down about themselves, each in a file of its own, so that it
/// outlives them; and what the files say together.
///
/// Stamps are of CLOCK_BOOTTIME, which all processes of a machine share. A hold was certainly valid
/// from the stamp after it was acquired to a later stamp that was taken before `valid()` said true:
/// once that is false it is false for ever.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::chaos {

using Stamp = std::chrono::nanoseconds;

Stamp stamp();

/// `set` to `wait` are calls of a Latch: it is entered by one that set it, counted, or found it
/// open. Who got a number, an id or an order has entered; it is the token.
enum class Mode : std::uint8_t {
  exclusive,
  shared,
  permits,
  rate,
  set,
  count_down,
  wait,
  number,
  order
};

/// A stay of one thread in one lock, or its try to get in; or another call.
struct Section {
  std::string who;  ///< process and number: "3.1/17"
  std::string name;
  Mode mode = Mode::exclusive;
  /// Of a semaphore or limiter; the count of a latch; the units of an order.
  std::uint64_t permits = 0;
  Stamp asked{};
  std::optional<Stamp> came{};  ///< acquired, or refused: the end of the wait
  bool entered = false;
  std::uint64_t token = 0;
  Stamp valid{};                ///< the last stamp at which it was certain; `came` without any
  std::optional<Stamp> left{};  ///< its release was answered
};

/// One line for each event, by one write(2). Threads: any.
class Journal {
 public:
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void ask(std::uint64_t number, std::string_view name, Mode mode, std::uint64_t permits);
  /// One line for each name of a MultiLock.
  void enter(std::uint64_t number, std::string_view name, std::uint64_t token, Stamp at);
  /// `at`: taken before `valid()` was asked, which said true.
  void valid(std::uint64_t number, Stamp at);
  void leave(std::uint64_t number);
  void refused(std::uint64_t number);
  /// An Error, before or after it was in.
  void fail(std::uint64_t number, std::string_view why);

 private:
  void write(const std::string& line) const;

  int file_ = -1;
};

/// What journals say, read as they grow.
class Sections {
 public:
  /// Reads what is new in the journal of the process `who`. A line without its end is left for the
  /// next time. Throws std::runtime_error, naming the line, for one that no Journal writes.
  void read(const std::filesystem::path& path, const std::string& who);

  const std::vector<Section>& all() const noexcept { return all_; }
  /// How often a call failed, by the reason.
  const std::map<std::string, std::size_t>& failures() const noexcept { return failures_; }

 private:
  struct File {
    std::streamoff read = 0;
    std::map<std::uint64_t, std::vector<std::size_t>> open;  // number -> places in all_
  };
  using Words = std::array<std::string, 6>;
  void take(File& file, const std::string& who, const std::string& line);
  void ask(File& file, const std::string& who, const Words& words);
  void change(File& file, const Words& words);

  std::vector<Section> all_;
  std::map<std::string, std::size_t> failures_;
  std::map<std::string, File> files_;
};

}  // namespace sluice::chaos
