// Strings as rows of bits; bit 0 is the highest of the first byte.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// The offset of a bit; "#3" counts fields of `width` bits where `width` is not 0.
std::size_t read_bit_offset(std::string_view word, std::int64_t width) {
  constexpr std::string_view error = "ERR bit offset is not an integer or out of range";
  const bool in_fields = width > 0 && word.starts_with('#');
  const auto parsed = parse_integer(in_fields ? word.substr(1) : word);
  if (!parsed || *parsed < 0) refuse(error);
  auto offset = *parsed;
  if (in_fields && __builtin_mul_overflow(offset, width, &offset)) refuse(error);
  if (offset / 8 >= static_cast<std::int64_t>(longest_string)) refuse(error);
  return static_cast<std::size_t>(offset);
}

/// What a script is charged for.
constexpr std::size_t bits_a_step = 1024;

bool bit_at(std::string_view text, std::size_t i) {
  return (static_cast<unsigned char>(text[i / 8]) >> (7 - i % 8) & 1) != 0;
}

void setbit(Context& context, Words words, Reply& reply) {
  const auto place = read_bit_offset(words[2], 0);
  if (words[3] != "0" && words[3] != "1")
    return reply.error("ERR bit is not an integer or out of range");
  auto* text = find_as<std::string>(context, words[1]);
  if (!text) text = &make<std::string>(context, words[1]);
  const auto before = text->size();
  expect_change(context.undo(), *text, place / 8, 1);
  if (before <= place / 8) text->resize(place / 8 + 1);
  const bool old = bit_at(*text, place);
  const bool wanted = words[3] == "1";
  if (old != wanted)
    (*text)[place / 8] = static_cast<char>((*text)[place / 8] ^ (0x80 >> place % 8));
  if (old != wanted || text->size() != before) context.changed();
  reply.integer(old ? 1 : 0);
}

void getbit(Context& context, Words words, Reply& reply) {
  const auto place = read_bit_offset(words[2], 0);
  auto* text = find_as<std::string>(context, words[1]);
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

  explicit BitRange(Words words) {
    if (words.size() > 3) refuse(syntax_error);
    if (!words.empty()) start = read_integer(words[0]);
    end_given = words.size() > 1;
    if (end_given) end = read_integer(words[1]);
    bits = words.size() > 2 && is_word(words[2], "bit");
    if (words.size() > 2 && !bits && !is_word(words[2], "byte")) refuse(syntax_error);
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
  if (words.size() == 3) return reply.error(syntax_error);
  const BitRange range{words.subspan(2)};
  const auto* text = find_as<std::string>(context, words[1]);
  if (!text || range.is_backward()) return reply.integer(0);
  const auto part = range.in(text->size());
  context.spend(part.size() / bits_a_step);
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
    read_integer(words[2]);
    return reply.error("ERR The bit argument must be 1 or 0.");
  }
  const bool wanted = words[2] == "1";
  const BitRange range{words.subspan(3)};
  const auto* text = find_as<std::string>(context, words[1]);
  if (!text) return reply.integer(wanted ? -1 : 0);
  const auto part = range.in(text->size());
  if (part.size() == 0) return reply.integer(-1);
  context.spend(part.size() / bits_a_step);
  const auto place = find_bit(*text, wanted, part.first, part.last);
  // Behind the string all bits are 0, unless the caller said where to stop.
  if (place == part.last && (wanted || range.end_given)) return reply.integer(-1);
  reply.count(place);
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
    {"not", nullptr}};

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
      operations, [&](const Operation& row) { return is_word(words[1], row.name); });
  if (operation == std::end(operations)) return reply.error(syntax_error);
  if (!operation->combine && words.size() != 4)
    return reply.error("ERR BITOP NOT must be called with a single source key.");
  std::vector<std::string_view> texts;
  for (const auto& key : words.subspan(3)) {
    const auto* text = find_as<std::string>(context, key);
    texts.push_back(text ? std::string_view{*text} : std::string_view{});
    context.spend(texts.back().size() * 8 / bits_a_step);
  }
  store_result(context, words[2], combined(texts, operation->combine), false, reply);
}

// --- BITFIELD: whole numbers of 1 to 64 bits anywhere in a string ---

__extension__ using Wide = __int128;

enum class Overflow { wrap, saturate, refuse };
constexpr Choice<Overflow> overflows[] = {
    {"wrap", Overflow::wrap}, {"sat", Overflow::saturate}, {"fail", Overflow::refuse}};
enum class Verb { get, set, add };

/// "i16", "u8": a type of number.
struct IntegerType {
  bool is_signed = false;
  int width = 0;

  Wide least() const noexcept { return is_signed ? -(Wide{1} << (width - 1)) : Wide{0}; }
  Wide most() const noexcept { return (Wide{1} << (is_signed ? width - 1 : width)) - 1; }
};

struct Step {
  Verb verb = Verb::get;
  IntegerType type;
  std::size_t offset = 0;
  std::int64_t operand = 0;
  Overflow overflow = Overflow::wrap;
};

IntegerType read_type(std::string_view word) {
  IntegerType type{.is_signed = word.starts_with('i')};
  const auto width = word.empty() ? std::nullopt : parse_integer(word.substr(1));
  const bool good = (type.is_signed || word.starts_with('u')) && width && *width >= 1 &&
                    *width <= (type.is_signed ? 64 : 63);
  if (!good)
    refuse(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not "
        "supported but i64 is.");
  type.width = static_cast<int>(*width);
  return type;
}

/// Reads one step at words[i] and leaves `i` behind it.
Step read_step(Words words, std::size_t& i, Overflow overflow) {
  Step step{.overflow = overflow};
  const auto left = words.size() - i - 1;
  const auto& verb = words[i];
  if (is_word(verb, "get") && left >= 2)
    step.verb = Verb::get;
  else if (is_word(verb, "set") && left >= 3)
    step.verb = Verb::set;
  else if (is_word(verb, "incrby") && left >= 3)
    step.verb = Verb::add;
  else
    refuse(syntax_error);
  step.type = read_type(words[i + 1]);
  step.offset = read_bit_offset(words[i + 2], step.type.width);
  if (step.verb != Verb::get) step.operand = read_integer(words[i + 3]);
  i += step.verb == Verb::get ? 3 : 4;
  return step;
}

std::vector<Step> read_steps(Words words, bool may_write) {
  std::vector<Step> steps;
  auto overflow = Overflow::wrap;
  for (std::size_t i = 2; i < words.size();) {
    if (is_word(words[i], "overflow") && i + 1 < words.size()) {
      if (!choose(words[i + 1], overflows, overflow)) refuse("ERR Invalid OVERFLOW type specified");
      i += 2;
      continue;
    }
    const auto step = read_step(words, i, overflow);
    if (step.verb != Verb::get && !may_write)
      refuse("ERR BITFIELD_RO only supports the GET subcommand");
    steps.push_back(step);
  }
  return steps;
}

std::int64_t value_at(std::string_view text, const Step& step) {
  std::uint64_t bits = 0;
  for (auto i = step.offset; i < step.offset + static_cast<std::size_t>(step.type.width); ++i) {
    const auto byte = i / 8 < text.size() ? static_cast<unsigned char>(text[i / 8]) : 0U;
    bits = bits << 1 | (byte >> (7 - i % 8) & 1U);
  }
  const int unused = step.type.is_signed ? 64 - step.type.width : 0;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

void put_at(std::string& text, const Step& step, std::int64_t value) {
  const auto width = static_cast<std::size_t>(step.type.width);
  for (std::size_t i = 0; i < width; ++i) {
    const auto place = step.offset + i;
    const auto mask = static_cast<unsigned char>(0x80U >> place % 8);
    const bool one = (static_cast<std::uint64_t>(value) >> (width - 1 - i) & 1U) != 0;
    const auto byte = static_cast<unsigned char>(text[place / 8]);
    text[place / 8] = static_cast<char>(one ? byte | mask : byte & ~mask);
  }
}

/// The sum as it fits into the field; empty: it does not, and OVERFLOW FAIL was asked for.
std::optional<std::int64_t> fitted(Wide sum, const Step& step) {
  const auto& type = step.type;
  if (sum >= type.least() && sum <= type.most()) return static_cast<std::int64_t>(sum);
  if (step.overflow == Overflow::refuse) return std::nullopt;
  if (step.overflow == Overflow::saturate)
    return static_cast<std::int64_t>(sum < type.least() ? type.least() : type.most());
  const int unused = 64 - type.width;
  const auto bits = static_cast<std::uint64_t>(sum) << unused;
  return type.is_signed ? static_cast<std::int64_t>(bits) >> unused
                        : static_cast<std::int64_t>(bits >> unused);
}

void perform(Context& context, const Step& step, std::string* text, bool has_grown, Reply& reply) {
  const auto old = value_at(text ? std::string_view{*text} : std::string_view{}, step);
  if (step.verb == Verb::get) return reply.integer(old);
  // A SET to an unsigned field takes the operand's bits, so that -1 overflows upwards.
  const Wide operand = step.verb == Verb::set && !step.type.is_signed
                           ? static_cast<Wide>(static_cast<std::uint64_t>(step.operand))
                           : static_cast<Wide>(step.operand);
  const auto value = fitted(step.verb == Verb::add ? Wide{old} + operand : operand, step);
  if (!value) return reply.null();
  const auto first = step.offset / 8;
  const auto last = (step.offset + static_cast<std::size_t>(step.type.width) - 1) / 8;
  expect_change(context.undo(), *text, first, last - first + 1);
  put_at(*text, step, *value);
  if (has_grown || *value != old) context.changed();
  reply.integer(step.verb == Verb::add ? *value : old);
}

template <bool may_write>
void bitfield(Context& context, Words words, Reply& reply) {
  const auto steps = read_steps(words, may_write);
  auto* text = find_as<std::string>(context, words[1]);
  std::size_t needed = 0;
  for (const auto& step : steps)
    if (step.verb != Verb::get)
      needed = std::max(needed, (step.offset + static_cast<std::size_t>(step.type.width) + 7) / 8);
  if (needed > 0 && !text) text = &make<std::string>(context, words[1]);
  const bool grows = needed > 0 && text->size() < needed;
  if (grows) {
    expect_change(context.undo(), *text, text->size(), needed - text->size());
    text->resize(needed);
  }
  reply.array(steps.size());
  const auto changes = context.changes();
  for (const auto& step : steps) perform(context, step, text, grows, reply);
  // Also where every step fails; Redis forgets to log it then.
  if (grows && context.changes() == changes) context.changed();
}

}  // namespace

CommandRows bit_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"bitcount", bitcount}, {"bitfield", bitfield<true>}, {"bitfield_ro", bitfield<false>},
      {"bitop", bitop},       {"bitpos", bitpos},           {"getbit", getbit},
      {"setbit", setbit},
  };
  return rows;
}

}  // namespace sluice::engine
