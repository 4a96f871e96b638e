/// The commands that make the data of one moment, collected in pieces while the engine goes on.
///
/// Why it is right: (1) A key that is not written after that moment is unchanged when the scan
/// reaches it. (2) A key that is written is copied before its first write, and the scan passes over
/// it. (3) A key that expires is deleted in the log after that moment, so it does not matter
/// whether it was copied. A key may be copied twice (a table that grows shows it again): both
/// copies are the same, and each begins with DEL unless it replaces by itself. Elements are written
/// 64 to a command, as Redis does.
///
/// Threads: under the engine's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/engine.hpp"
#include "engine/core/keyspace.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {

class Snapshot {
 public:
  explicit Snapshot(Engine& engine) : engine_(engine) {}

  /// Called before each command that may write.
  void before_write(const resp::CommandSpec& spec, Words words);

  /// Copies the next keys, until about `enough` bytes are gathered. False: that was all.
  bool collect(std::size_t enough);
  /// What was gathered since the last time.
  std::string take() { return std::exchange(records_, {}); }
  /// The databases were emptied or swapped: this snapshot cannot be finished.
  bool is_spoilt() const noexcept { return spoilt_; }

 private:
  void copy(int database, const Entry& entry);
  void copy_before_write(std::string_view key);
  /// The libraries of functions, which are in no database.
  void copy_libraries();

  Engine& engine_;
  std::string records_;
  int selected_ = -1;  // in records_
  int scanned_ = 0;    // the database that is being scanned
  std::uint64_t cursor_ = 0;
  bool spoilt_ = false;
  bool has_libraries_ = false;
  struct Hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return hash_of(text); }
  };
  // Since that moment; the scan passes over them.
  std::unordered_set<std::string, Hasher, std::equal_to<>> written_;
  std::vector<std::size_t> positions_;
};

}  // namespace sluice::engine
