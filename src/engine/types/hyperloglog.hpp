/// Counts of different elements in Redis's form "HYLL", so that a value goes from here to a server
/// and back: 16384 registers, of each of which is kept the longest run of zeros that the hash of an
/// element began with. Few are kept as runs of equal registers (sparse), many as 6 bits each.
/// The hash is MurmurHash64A; counted is as Otmar Ertl says, "New cardinality estimation algorithms
/// for HyperLogLog sketches", arXiv:1702.01284. Changes give the same bytes as Redis's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/types/undo.hpp"

namespace sluice::engine {

class HyperLogLog {
 public:
  static constexpr std::size_t registers = 16384;
  using Registers = std::array<std::uint8_t, registers>;

  /// The value of none.
  static std::string none();
  /// By its head; the registers may be damaged all the same.
  static bool is_one(std::string_view value) noexcept;

  /// REQUIRES: is_one(value); `value` outlives this.
  explicit HyperLogLog(std::string& value) noexcept : value_(value) {}

  bool is_dense() const noexcept { return value_[4] == 0; }
  bool is_damaged() const noexcept;
  /// The count that a server has left in the value, if nothing was added since.
  std::optional<std::uint64_t> known_count() const noexcept;

  // REQUIRES: !is_damaged()

  void raise(Registers& to) const noexcept;
  /// True: it changed the value.
  bool add(std::string_view element, Undo* undo);
  bool raise_one(std::size_t index, std::uint8_t count, Undo* undo);
  void become_dense(Undo* undo);
  void forget_count(Undo* undo);

  /// How many elements made them, about: 0.81 % is its standard error.
  static std::uint64_t count_of(const Registers& registers) noexcept;

 private:
  bool raise_dense(std::size_t index, std::uint8_t count, Undo* undo);
  bool raise_sparse(std::size_t index, std::uint8_t count, Undo* undo);
  void join_runs(std::size_t at);

  std::string& value_;
};

}  // namespace sluice::engine
