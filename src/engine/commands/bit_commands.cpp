// Strings as rows of bits; bit 0 is the highest of the first byte. BITFIELD is in
// bitfield_commands.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "engine/commands/bits.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {

bool read_bit_offset(std::string_view word, std::int64_t width, std::int64_t& offset,
                     Reply& reply) {
  constexpr std::string_view error = "ERR bit offset is not an integer or out of range";
  const bool in_fields = width > 0 && word.starts_with('#');
  const auto parsed = parse_integer(in_fields ? word.substr(1) : word);
  if (!parsed || *parsed < 0) return fail(reply, error);
  offset = *parsed;
  if (in_fields && __builtin_mul_overflow(offset, width, &offset)) return fail(reply, error);
  return offset / 8 < static_cast<std::int64_t>(longest_string) || fail(reply, error);
}

namespace {

bool bit_at(std::string_view text, std::size_t i) {
  return (static_cast<unsigned char>(text[i / 8]) >> (7 - i % 8) & 1) != 0;
}

void setbit(Context& context, Words words, Reply& reply) {
  std::int64_t offset = 0;
  if (!read_bit_offset(words[2], 0, offset, reply)) return;
  if (words[3] != "0" && words[3] != "1")
    return reply.error("ERR bit is not an integer or out of range");
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  if (!text) text = as<std::string>(context.keys().put(words[1], std::string{}));
  const auto place = static_cast<std::size_t>(offset);
  const auto before = text->size();
  if (before <= place / 8) text->resize(place / 8 + 1);
  const bool old = bit_at(*text, place);
  const bool wanted = words[3] == "1";
  if (old != wanted)
    (*text)[place / 8] = static_cast<char>((*text)[place / 8] ^ (0x80 >> place % 8));
  if (old != wanted || text->size() != before) context.changed();
  reply.integer(old ? 1 : 0);
}

void getbit(Context& context, Words words, Reply& reply) {
  std::int64_t offset = 0;
  if (!read_bit_offset(words[2], 0, offset, reply)) return;
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  const auto place = static_cast<std::size_t>(offset);
  reply.integer(text && place / 8 < text->size() && bit_at(*text, place) ? 1 : 0);
}

std::int64_t ones_in(std::string_view bytes) {
  std::int64_t count = 0;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    count += std::popcount(word);
  }
  for (const char byte : bytes) count += std::popcount(static_cast<unsigned char>(byte));
  return count;
}

/// Ones among the bits [first, last).
std::int64_t ones_between(std::string_view text, std::size_t first, std::size_t last) {
  std::int64_t count = 0;
  for (; first < last && first % 8 != 0; ++first) count += bit_at(text, first) ? 1 : 0;
  for (; last > first && last % 8 != 0; --last) count += bit_at(text, last - 1) ? 1 : 0;
  return count + ones_in(text.substr(first / 8, (last - first) / 8));
}

/// Reads "start [end [BYTE|BIT]]" into an interval of bits.
struct BitRange {
  std::int64_t start = 0;
  std::int64_t end = -1;
  bool end_given = false;
  bool bits = false;

  bool read(Words words, Reply& reply) {
    if (words.size() > 3) return fail(reply, syntax_error);
    if (!words.empty() && !read_integer(words[0], start, reply)) return false;
    end_given = words.size() > 1;
    if (end_given && !read_integer(words[1], end, reply)) return false;
    bits = words.size() > 2 && same_word(words[2], "bit");
    return words.size() < 3 || bits || same_word(words[2], "byte") || fail(reply, syntax_error);
  }
  bool is_backward() const noexcept { return start < 0 && end < 0 && start > end; }
  Interval in(std::size_t bytes) const {
    // As Redis: an end before the beginning means the beginning.
    const auto total = bits ? bytes * 8 : bytes;
    const auto last =
        end < 0 ? std::max<std::int64_t>(end + static_cast<std::int64_t>(total), 0) : end;
    const auto part = interval_of(start, last, total);
    return bits ? part : Interval{part.first * 8, part.last * 8};
  }
};

void bitcount(Context& context, Words words, Reply& reply) {
  BitRange range;
  std::string* text = nullptr;
  if (words.size() == 3) return reply.error(syntax_error);
  if (!range.read(words.subspan(2), reply) || !find_as(context, words[1], text, reply)) return;
  if (!text || range.is_backward()) return reply.integer(0);
  const auto part = range.in(text->size());
  reply.integer(ones_between(*text, part.first, part.last));
}

/// The place of the first bit that is `wanted` in [first, last), or `last`.
std::size_t find_bit(std::string_view text, bool wanted, std::size_t first, std::size_t last) {
  const auto skipped = static_cast<char>(wanted ? 0x00 : 0xff);
  while (first < last) {
    if (first % 8 == 0 && last - first >= 8 && text[first / 8] == skipped)
      first += 8;
    else if (bit_at(text, first) == wanted)
      return first;
    else
      ++first;
  }
  return last;
}

void bitpos(Context& context, Words words, Reply& reply) {
  if (words[2] != "0" && words[2] != "1") {
    std::int64_t bit = 0;
    if (read_integer(words[2], bit, reply)) reply.error("ERR The bit argument must be 1 or 0.");
    return;
  }
  const bool wanted = words[2] == "1";
  BitRange range;
  std::string* text = nullptr;
  if (!range.read(words.subspan(3), reply) || !find_as(context, words[1], text, reply)) return;
  if (!text) return reply.integer(wanted ? -1 : 0);
  const auto part = range.in(text->size());
  if (part.size() == 0) return reply.integer(-1);
  const auto place = find_bit(*text, wanted, part.first, part.last);
  // Behind the string all bits are 0, unless the caller said where to stop.
  if (place == part.last && (wanted || range.end_given)) return reply.integer(-1);
  reply.integer(static_cast<std::int64_t>(place));
}

using Combine = unsigned char (*)(unsigned char, unsigned char);
struct Operation {
  std::string_view name;
  Combine combine;  ///< null: NOT
};
constexpr Operation operations[] = {
    {"and", [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a & b); }},
    {"or", [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a | b); }},
    {"xor", [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a ^ b); }},
    {"not", nullptr},
};

std::string combined(const std::vector<std::string_view>& texts, Combine combine) {
  const auto size = std::ranges::max(texts, {}, &std::string_view::size).size();
  std::string result{texts.front()};
  result.resize(size);
  if (!combine) {
    for (char& byte : result) byte = static_cast<char>(~byte);
    return result;
  }
  for (const auto text : std::span{texts}.subspan(1))
    for (std::size_t i = 0; i < size; ++i)
      result[i] =
          static_cast<char>(combine(static_cast<unsigned char>(result[i]),
                                    i < text.size() ? static_cast<unsigned char>(text[i]) : '\0'));
  return result;
}

void bitop(Context& context, Words words, Reply& reply) {
  const auto* operation = std::ranges::find_if(
      operations, [&](const Operation& row) { return same_word(words[1], row.name); });
  if (operation == std::end(operations)) return reply.error(syntax_error);
  if (!operation->combine && words.size() != 4)
    return reply.error("ERR BITOP NOT must be called with a single source key.");
  std::vector<std::string_view> texts;
  for (const auto& key : words.subspan(3)) {
    std::string* text = nullptr;
    if (!find_as(context, key, text, reply)) return;
    texts.push_back(text ? std::string_view{*text} : std::string_view{});
  }
  auto result = combined(texts, operation->combine);
  const auto size = result.size();
  if (size > 0) {
    context.keys().put(words[2], std::move(result));
    context.changed();
  } else if (find(context, words[2])) {
    context.keys().erase(words[2]);
    context.changed();
    context.log_instead({"DEL", words[2]});
  }
  reply.integer(static_cast<std::int64_t>(size));
}

constexpr Handlers::Row rows[] = {{"setbit", setbit},
                                  {"getbit", getbit},
                                  {"bitcount", bitcount},
                                  {"bitpos", bitpos},
                                  {"bitop", bitop}};

}  // namespace

void add_bit_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
