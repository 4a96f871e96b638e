#include "engine/types/hyperloglog.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::size_t index_bits = 14;
constexpr std::size_t hash_bits = 64 - index_bits;
constexpr std::size_t head_size = 16;  // HYLL, form, three unused, eight of the count
constexpr std::size_t count_at = 8;
constexpr std::size_t dense_size = head_size + HyperLogLog::registers * 6 / 8;
constexpr std::size_t largest_sparse = 3000;  // Redis's default hll-sparse-max-bytes
constexpr char unknown_count = '\x80';        // in the last byte of the head

std::uint64_t murmur_hash(std::string_view text) noexcept {
  constexpr std::uint64_t m = 0xc6a4a7935bd1e995;
  constexpr int r = 47;
  std::uint64_t h = 0xadc83b19ULL ^ (text.size() * m);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t k = 0;
    std::memcpy(&k, text.data(), 8);
    k *= m;
    k ^= k >> r;
    h ^= k * m;
    h *= m;
  }
  if (!text.empty()) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    h = (h ^ rest) * m;
  }
  h ^= h >> r;
  h *= m;
  return h ^ h >> r;
}

/// Equal registers beside each other, in the sparse form: 00nnnnnn and 01nnnnnn nnnnnnnn are zeros,
/// 1vvvvvnn is v + 1.
struct Run {
  std::size_t bytes;
  std::size_t length;
  std::uint8_t value;
};
constexpr std::size_t longest_zeros = 64;  // in one byte
constexpr std::size_t longest_values = 4;
constexpr std::uint8_t largest_sparse_value = 32;

/// REQUIRES: at < value.size(). A run whose second byte is not there has no bytes.
Run run_at(std::string_view value, std::size_t at) noexcept {
  const auto byte = static_cast<unsigned char>(value[at]);
  if ((byte & 0x80) != 0)
    return {1, (byte & 3U) + 1, static_cast<std::uint8_t>((byte >> 2 & 31U) + 1)};
  if ((byte & 0x40) == 0) return {1, (byte & 63U) + 1, 0};
  if (at + 1 == value.size()) return {0, 0, 0};
  return {2, ((byte & 63U) << 8 | static_cast<unsigned char>(value[at + 1])) + 1, 0};
}

void append_run(std::string& out, std::size_t length, std::uint8_t value) {
  if (length == 0) return;
  const auto n = length - 1;
  if (value > 0)
    out += static_cast<char>(0x80U | (value - 1U) << 2 | n);
  else if (length <= longest_zeros)
    out += static_cast<char>(n);
  else
    (out += static_cast<char>(0x40U | n >> 8)) += static_cast<char>(n);
}

std::uint8_t dense_at(std::string_view value, std::size_t index) noexcept {
  const auto bit = index * 6;
  const auto at = head_size + bit / 8;
  const auto high = at + 1 < value.size() ? static_cast<unsigned char>(value[at + 1]) : 0U;
  return (static_cast<unsigned char>(value[at]) | high << 8) >> bit % 8 & 63U;
}
void set_dense(std::string& value, std::size_t index, std::uint8_t count) noexcept {
  const auto bit = index * 6;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto at = head_size + bit / 8 + i;
    if (at >= value.size()) return;
    const auto shifted = [&](unsigned bits) { return bits << bit % 8 >> 8 * i; };
    const auto byte = static_cast<unsigned char>(value[at]);
    value[at] = static_cast<char>((byte & ~shifted(63U)) | shifted(count));
  }
}

double sigma(double x) noexcept {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double before = 0;
  double y = 1;
  double z = x;
  do {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  } while (before != z);
  return z;
}

double tau(double x) noexcept {
  if (x == 0 || x == 1) return 0;
  double before = 0;
  double y = 1;
  double z = 1 - x;
  do {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= std::pow(1 - x, 2) * y;
  } while (before != z);
  return z / 3;
}

}  // namespace

std::string HyperLogLog::none() {
  std::string value{"HYLL\1"};
  value.resize(head_size);
  append_run(value, registers, 0);
  return value;
}

bool HyperLogLog::is_one(std::string_view value) noexcept {
  if (value.size() < head_size || !value.starts_with("HYLL")) return false;
  return value[4] == 1 || (value[4] == 0 && value.size() == dense_size);
}

bool HyperLogLog::is_damaged() const noexcept {
  if (is_dense()) return false;
  std::size_t covered = 0;
  for (auto at = head_size; at < value_.size();) {
    const auto run = run_at(value_, at);
    if (run.bytes == 0) return true;
    covered += run.length;
    at += run.bytes;
  }
  return covered != registers;
}

std::optional<std::uint64_t> HyperLogLog::known_count() const noexcept {
  if ((value_[head_size - 1] & unknown_count) != 0) return std::nullopt;
  std::uint64_t count = 0;
  std::memcpy(&count, value_.data() + count_at, sizeof count);
  return count;
}

void HyperLogLog::raise(Registers& to) const noexcept {
  const auto raise = [&](std::size_t index, std::uint8_t count) {
    to[index] = std::max(to[index], count);
  };
  if (is_dense()) {
    for (std::size_t i = 0; i < registers; ++i) raise(i, dense_at(value_, i));
    return;
  }
  std::size_t index = 0;
  for (auto at = head_size; at < value_.size();) {
    const auto run = run_at(value_, at);
    for (const auto end = index + run.length; index < end; ++index)
      if (run.value > 0) raise(index, run.value);
    at += run.bytes;
  }
}

bool HyperLogLog::add(std::string_view element, Undo* undo) {
  const auto hash = murmur_hash(element);
  const auto rest = hash >> index_bits | 1ULL << hash_bits;
  return raise_one(hash % registers, static_cast<std::uint8_t>(1 + std::countr_zero(rest)), undo);
}

bool HyperLogLog::raise_one(std::size_t index, std::uint8_t count, Undo* undo) {
  return is_dense() ? raise_dense(index, count, undo) : raise_sparse(index, count, undo);
}

bool HyperLogLog::raise_dense(std::size_t index, std::uint8_t count, Undo* undo) {
  if (dense_at(value_, index) >= count) return false;
  const auto at = head_size + index * 6 / 8;
  expect_change(undo, value_, at, std::min<std::size_t>(2, value_.size() - at));
  set_dense(value_, index, count);
  return true;
}

bool HyperLogLog::raise_sparse(std::size_t index, std::uint8_t count, Undo* undo) {
  std::size_t before = head_size;  // the run before
  std::size_t at = head_size;
  std::size_t first = 0;
  auto run = run_at(value_, at);
  while (index >= first + run.length) {
    first += run.length;
    before = std::exchange(at, at + run.bytes);
    run = run_at(value_, at);
  }
  if (run.value >= count) return false;
  std::string pieces;
  append_run(pieces, index - first, run.value);
  append_run(pieces, 1, std::min(count, largest_sparse_value));
  append_run(pieces, first + run.length - index - 1, run.value);
  const bool grows_too_large =
      pieces.size() > run.bytes && value_.size() + pieces.size() - run.bytes > largest_sparse;
  if (count > largest_sparse_value || grows_too_large) {
    become_dense(undo);
    return raise_dense(index, count, undo);
  }
  expect_change(undo, value_);
  if (undo) undo->wrote(value_.size());
  value_.replace(at, run.bytes, pieces);
  join_runs(before);
  return true;
}

/// Of the next five runs those that are of the same value, where one byte holds both.
void HyperLogLog::join_runs(std::size_t at) {
  for (int left = 5; left > 0 && at < value_.size(); --left) {
    const auto run = run_at(value_, at);
    if (run.value > 0 && at + 1 < value_.size()) {
      const auto next = run_at(value_, at + 1);
      if (next.value == run.value && run.length + next.length <= longest_values) {
        std::string joined;
        append_run(joined, run.length + next.length, run.value);
        value_.replace(at, 2, joined);
        continue;
      }
    }
    at += run.bytes;
  }
}

void HyperLogLog::become_dense(Undo* undo) {
  if (is_dense()) return;
  Registers all{};
  raise(all);
  expect_change(undo, value_);
  if (undo) undo->wrote(dense_size);
  value_.resize(head_size);
  value_[4] = 0;
  value_.resize(dense_size);
  for (std::size_t i = 0; i < registers; ++i)
    if (all[i] > 0) set_dense(value_, i, all[i]);
}

void HyperLogLog::forget_count(Undo* undo) {
  expect_change(undo, value_, head_size - 1, 1);
  value_[head_size - 1] = static_cast<char>(value_[head_size - 1] | unknown_count);
}

std::uint64_t HyperLogLog::count_of(const Registers& registers) noexcept {
  constexpr double m = HyperLogLog::registers;
  constexpr double alpha = 0.721347520444481703680;  // 0.5 / ln(2)
  std::array<int, 64> counts{};
  for (const auto value : registers) ++counts[value];
  double z = m * tau((m - counts[hash_bits + 1]) / m);
  for (auto value = hash_bits; value >= 1; --value) z = (z + counts[value]) * 0.5;
  z += m * sigma(counts[0] / m);
  return static_cast<std::uint64_t>(std::llround(alpha * m * m / z));
}

}  // namespace sluice::engine
