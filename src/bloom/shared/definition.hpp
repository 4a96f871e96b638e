/// What a shared filter is, as its config hash says: sizes and hashes of its links. A filter has
/// one link, as Redisson's has, or is a chain that grows: each link is a Bloom filter of its own.
///
/// The error rates of a chain's links are p·6/π²/i², i from 1, so that all of them together stay
/// below p however many there are (after Almeida, Baquero, Preguiça, Hutchison: Scalable Bloom
/// Filters, 2007, whose geometric series costs long chains more).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bloom/shared/key_hash.hpp"

namespace sluice::bloom {

/// "0.03", "1.0E-4": as Double.toString() of Java (from 19 on) writes it. REQUIRES: `number` is
/// finite and not negative.
std::string java_text(double number);

struct Link {
  std::uint64_t bits = 0;
  unsigned hashes = 0;
  std::uint64_t capacity = 0;  ///< keys for which its share of the error rate holds
  Modulus modulus{};

  friend bool operator==(const Link& one, const Link& other) noexcept {
    return one.bits == other.bits && one.hashes == other.hashes && one.capacity == other.capacity;
  }
};

/// Names of the keys of a filter. All lie in one slot.
struct FilterNames {
  explicit FilterNames(std::string name);

  /// The bits of a link, from 0.
  std::string link(std::size_t number) const;
  std::vector<std::string> links(std::size_t many) const;

  std::string bits;
  std::string config;
  std::string channel;
};

struct Definition {
  /// Of the config hash, in the order in which scripts compare and answer them.
  static constexpr std::size_t fields = 5;
  static constexpr std::size_t most_links = 64;
  std::string size;
  std::string hashes;
  std::string chain;  ///< empty: one link
  std::string id;     ///< of the rebuild that it came from; empty: none
  std::string next;   ///< the id of the rebuild that is under way; empty: none

  std::vector<Link> links;  ///< the oldest first; empty: there is no filter

  bool exists() const noexcept { return !links.empty(); }
  bool grows() const noexcept { return !chain.empty(); }
  std::size_t hashes_of_all() const noexcept;

  /// Of what HMGET or a script answers. `name`: of the hash, for messages. Throws Error:
  /// wrong_type (a hash that is no filter's, or numbers beyond all limits), corrupt (a script says
  /// that a link is missing).
  static Definition of(const Value& reply, const std::string& name);
  /// Of a filter to be made. Throws Error (bad_argument): a size out of range.
  static Definition made(const SharedBloomSize& size);
  /// The chain with a link more. Throws Error (out_of_space): it has as many as it may have.
  std::string longer_chain() const;

  friend bool operator==(const Definition& one, const Definition& other) noexcept {
    return one.size == other.size && one.hashes == other.hashes && one.chain == other.chain &&
           one.id == other.id && one.next == other.next;
  }
};

}  // namespace sluice::bloom
