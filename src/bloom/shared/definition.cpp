#include "bloom/shared/definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/integer.hpp"
#include "bloom/sizing.hpp"
#include "store/key_name.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;  // of a string in Redis
constexpr std::uint64_t least_link = 64;
constexpr unsigned most_hashes_of_redisson =
    1100;  // Redisson's, for the smallest double above 0, are 1074
constexpr std::uint64_t most_expected = 1'000'000'000'000;
constexpr std::uint64_t growth = 2;

/// What all links of a chain are made from.
struct ChainTerms {
  double error_rate = 0;
  std::uint64_t largest_link = 0;
};

/// The share of a link, from 0, in the error rate of its chain.
double error_of_link(double error_rate, std::size_t number) {
  const double i = static_cast<double>(number) + 1;
  return std::max(error_rate * 6 / (std::numbers::pi * std::numbers::pi) / (i * i),
                  std::numeric_limits<double>::denorm_min());
}

/// For `expected` keys, or as many as the largest link may have.
Link link_of(std::uint64_t expected, double error_rate, std::uint64_t largest) {
  using std::numbers::ln2;
  const auto fitting = static_cast<double>(largest) * ln2 * ln2 / -std::log(error_rate);
  const auto capacity =
      static_cast<std::uint64_t>(std::clamp(fitting, 1.0, static_cast<double>(expected)));
  Link link{.bits = std::clamp(optimal_bits(capacity, error_rate), std::uint64_t{1}, largest),
            .hashes = 0,
            .capacity = capacity};
  link.hashes = std::min(hashes_of_size(link.bits, capacity), most_hashes_of_redisson);
  return link;
}

// The chain as text: "error_rate largest_link|bits hashes capacity|bits hashes capacity". Sizes are
// written down, not computed again, since logarithms differ in their last bit between machines.

std::string text_of(const ChainTerms& terms) {
  return fmt::format("{} {}", java_text(terms.error_rate), terms.largest_link);
}
std::string text_of(const Link& link) {
  return fmt::format("|{} {} {}", link.bits, link.hashes, link.capacity);
}

std::string_view take(std::string_view& text, char end) {
  const auto size = std::min(text.find(end), text.size());
  const auto word = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return word;
}

std::optional<Link> parse_link(std::string_view bits, std::string_view hashes,
                               std::string_view capacity) {
  const auto bits_number = parse_integer<std::uint64_t>(bits);
  const auto hashes_number = parse_integer<unsigned>(hashes);
  const auto keys = parse_integer<std::uint64_t>(capacity);
  const bool is_sound = bits_number && hashes_number && keys && *bits_number >= 1 &&
                        *bits_number <= most_bits && *hashes_number >= 1 &&
                        *hashes_number <= most_hashes_of_redisson;
  if (!is_sound) return std::nullopt;
  return Link{.bits = *bits_number,
              .hashes = *hashes_number,
              .capacity = *keys,
              .modulus = Modulus{*bits_number}};
}

std::optional<ChainTerms> parse_terms(std::string_view text) {
  const auto error_rate = parse_decimal(take(text, ' '));
  const auto largest = parse_integer<std::uint64_t>(text);
  const bool is_sound = error_rate && *error_rate > 0 && *error_rate < 1 && largest &&
                        *largest >= least_link && *largest <= most_bits;
  if (!is_sound) return std::nullopt;
  return ChainTerms{.error_rate = *error_rate, .largest_link = *largest};
}

/// Empty: it is no chain.
std::vector<Link> parse_chain(std::string_view text) {
  if (!parse_terms(take(text, '|'))) return {};
  std::vector<Link> links;
  while (!text.empty()) {
    auto words = take(text, '|');
    const auto bits = take(words, ' ');
    const auto hashes = take(words, ' ');
    const auto link = parse_link(bits, hashes, words);
    if (!link || link->capacity == 0 || links.size() == Definition::most_links) return {};
    links.push_back(*link);
  }
  return links;
}

std::string text_of(const Value& field) {
  return field.is_null() ? std::string{} : field.as_text();
}

[[noreturn]] void refuse(const std::string& name, std::string_view what, const std::string& value) {
  throw Error{Errc::wrong_type,
              fmt::format("the hash {} is no Bloom filter's: {} is {}, which none has",
                          to_string(Value::bulk_string(name)), what,
                          to_string(Value::bulk_string(value), 100))};
}

}  // namespace

std::string java_text(double number) {
  using enum std::chars_format;
  char digits[32];
  char* const end = digits + sizeof digits;
  // The shortest digits that mean this number; two at least, the nearest.
  std::string text{digits, std::to_chars(digits, end, number, scientific).ptr};
  if (text[1] == 'e') text.assign(digits, std::to_chars(digits, end, number, scientific, 1).ptr);
  const auto mark = text.find('e');
  const int exponent =
      leading_number<int>(std::string_view{text}.substr(mark + (text[mark + 1] == '+' ? 2 : 1)));
  std::string mantissa = text.substr(0, mark);
  if (number != 0 && (exponent < -3 || exponent >= 7))
    return fmt::format("{}E{}", mantissa, exponent);
  std::erase(mantissa, '.');
  if (exponent < 0) {
    mantissa.insert(0, static_cast<std::size_t>(-exponent), '0');
    mantissa.insert(1, 1, '.');
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (mantissa.size() < whole + 1) mantissa.append(whole + 1 - mantissa.size(), '0');
    mantissa.insert(whole, 1, '.');
  }
  while (mantissa.ends_with('0') && mantissa[mantissa.size() - 2] != '.') mantissa.pop_back();
  return mantissa;
}

FilterNames::FilterNames(std::string name)
    : bits(std::move(name)),
      config(key_with_suffix(bits, "config")),
      channel(key_with_prefix("sluice_bloom", bits)) {}

std::string FilterNames::link(std::size_t number) const {
  return number == 0 ? bits : key_with_suffix(bits, fmt::format("link:{}", number));
}

std::vector<std::string> FilterNames::links(std::size_t many) const {
  std::vector<std::string> names;
  names.reserve(many);
  for (std::size_t i = 0; i < many; ++i) names.push_back(link(i));
  return names;
}

std::size_t Definition::hashes_of_all() const noexcept {
  std::size_t all = 0;
  for (const Link& link : links) all += link.hashes;
  return all;
}

Definition Definition::of(const Value& reply, const std::string& name) {
  const auto& parts = reply.as_items();
  if (parts.size() == 2)
    throw Error{
        Errc::corrupt,
        fmt::format("link {} of the Bloom filter of {} is missing: there is no key '{}'. It "
                    "was evicted, or a Java program, which knows the first link alone, has "
                    "renamed, copied or deleted the filter: rename the link, too, or make "
                    "the filter anew",
                    parts[0].as_integer(), to_string(Value::bulk_string(name)),
                    parts[1].as_text())};
  Definition found;
  found.size = text_of(parts.at(0));
  found.hashes = text_of(parts.at(1));
  found.chain = text_of(parts.at(2));
  found.id = text_of(parts.at(3));
  found.next = text_of(parts.at(4));
  if (parts.at(0).is_null() && parts.at(1).is_null()) return found;
  const auto first = parse_link(found.size, found.hashes, "0");
  if (!first) {
    const bool wrong_size = !parse_link(found.size, "1", "0");
    refuse(name, wrong_size ? "size" : "hashIterations", wrong_size ? found.size : found.hashes);
  }
  if (!found.grows()) {
    found.links.push_back(*first);
    return found;
  }
  found.links = parse_chain(found.chain);
  const bool is_chain = !found.links.empty() && found.links.front().bits == first->bits &&
                        found.links.front().hashes == first->hashes;
  if (!is_chain) refuse(name, "sluice:links", found.chain);
  return found;
}

Definition Definition::made(const SharedBloomSize& size) {
  if (size.expected < 1 || size.expected > most_expected)
    throw Error{Errc::bad_argument, fmt::format("a Bloom filter is for 1 to {} keys, not for {}",
                                                most_expected, size.expected)};
  if (!(size.error_rate > 0 && size.error_rate < 1))
    throw Error{Errc::bad_argument,
                fmt::format("the error rate of a Bloom filter is above 0 and below 1, not {}",
                            size.error_rate)};
  if (size.largest_link < least_link || size.largest_link > SharedBloomSize::most_bits)
    throw Error{Errc::bad_argument,
                fmt::format("the largest link of a Bloom filter must be {} to {} bits, not {}",
                            least_link, SharedBloomSize::most_bits, size.largest_link)};
  const auto wanted = -static_cast<double>(size.expected) * std::log(size.error_rate) /
                      (std::numbers::ln2 * std::numbers::ln2);
  const bool is_chain = size.scalable || wanted >= static_cast<double>(size.largest_link) + 1;
  if (!is_chain && wanted < 1)
    throw Error{Errc::bad_argument,
                fmt::format("a Bloom filter for {} keys at an error rate of {} would have no bits: "
                            "order more keys, or a lower rate",
                            size.expected, size.error_rate)};
  Definition made;
  Link first;
  if (is_chain) {
    const double share = error_of_link(size.error_rate, 0);
    first = link_of(size.expected, share, size.largest_link);
    made.chain =
        text_of(ChainTerms{.error_rate = size.error_rate, .largest_link = size.largest_link});
    made.chain += text_of(first);
  } else {
    first.bits = optimal_bits(size.expected, size.error_rate);
    first.hashes = std::min(hashes_of_size(first.bits, size.expected), most_hashes_of_redisson);
  }
  first.modulus = Modulus{first.bits};
  made.size = fmt::to_string(first.bits);
  made.hashes = fmt::to_string(first.hashes);
  made.links.push_back(first);
  return made;
}

std::string Definition::longer_chain() const {
  const auto terms = parse_terms(std::string_view{chain}.substr(0, chain.find('|')));
  if (!terms || links.size() >= most_links)
    throw Error{Errc::out_of_space,
                fmt::format("a Bloom filter has at most {} links, and all are full: rebuild it for "
                            "more keys",
                            most_links)};
  const double share = error_of_link(terms->error_rate, links.size());
  const auto wanted = std::min(links.back().capacity, most_expected) * growth;
  return chain + text_of(link_of(wanted, share, terms->largest_link));
}

}  // namespace sluice::bloom
