// BITFIELD and BITFIELD_RO: whole numbers of 1 to 64 bits anywhere in a string.
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/commands/bits.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

__extension__ using Wide = __int128;

enum class Overflow { wrap, saturate, refuse };
enum class Verb { get, set, add };

/// "i16", "u8": a type of number.
struct Field {
  bool is_signed = false;
  int width = 0;

  Wide least() const noexcept { return is_signed ? -(Wide{1} << (width - 1)) : Wide{0}; }
  Wide most() const noexcept { return (Wide{1} << (is_signed ? width - 1 : width)) - 1; }
};

struct Step {
  Verb verb = Verb::get;
  Field field;
  std::size_t offset = 0;
  std::int64_t operand = 0;
  Overflow overflow = Overflow::wrap;
};

bool read_field(std::string_view word, Field& field, Reply& reply) {
  field.is_signed = word.starts_with('i');
  const auto width = word.empty() ? std::nullopt : parse_integer(word.substr(1));
  const bool good = (field.is_signed || word.starts_with('u')) && width && *width >= 1 &&
                    *width <= (field.is_signed ? 64 : 63);
  if (!good)
    return fail(reply,
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not "
                "supported but i64 is.");
  field.width = static_cast<int>(*width);
  return true;
}

bool read_overflow(std::string_view word, Overflow& overflow, Reply& reply) {
  if (same_word(word, "wrap"))
    overflow = Overflow::wrap;
  else if (same_word(word, "sat"))
    overflow = Overflow::saturate;
  else if (same_word(word, "fail"))
    overflow = Overflow::refuse;
  else
    return fail(reply, "ERR Invalid OVERFLOW type specified");
  return true;
}

/// Reads one step at words[i] and leaves `i` behind it.
bool read_step(Words words, std::size_t& i, Step& step, Reply& reply) {
  const auto left = words.size() - i - 1;
  const auto& verb = words[i];
  if (same_word(verb, "get") && left >= 2)
    step.verb = Verb::get;
  else if (same_word(verb, "set") && left >= 3)
    step.verb = Verb::set;
  else if (same_word(verb, "incrby") && left >= 3)
    step.verb = Verb::add;
  else
    return fail(reply, syntax_error);
  std::int64_t offset = 0;
  if (!read_field(words[i + 1], step.field, reply) ||
      !read_bit_offset(words[i + 2], step.field.width, offset, reply))
    return false;
  step.offset = static_cast<std::size_t>(offset);
  if (step.verb != Verb::get && !read_integer(words[i + 3], step.operand, reply)) return false;
  i += step.verb == Verb::get ? 3 : 4;
  return true;
}

bool read_steps(Words words, bool may_write, std::vector<Step>& steps, Reply& reply) {
  auto overflow = Overflow::wrap;
  for (std::size_t i = 2; i < words.size();) {
    if (same_word(words[i], "overflow") && i + 1 < words.size()) {
      if (!read_overflow(words[i + 1], overflow, reply)) return false;
      i += 2;
      continue;
    }
    Step step{.overflow = overflow};
    if (!read_step(words, i, step, reply)) return false;
    if (step.verb != Verb::get && !may_write)
      return fail(reply, "ERR BITFIELD_RO only supports the GET subcommand");
    steps.push_back(step);
  }
  return true;
}

std::int64_t value_at(std::string_view text, const Step& step) {
  std::uint64_t bits = 0;
  for (auto i = step.offset; i < step.offset + static_cast<std::size_t>(step.field.width); ++i) {
    const auto byte = i / 8 < text.size() ? static_cast<unsigned char>(text[i / 8]) : 0U;
    bits = bits << 1 | (byte >> (7 - i % 8) & 1U);
  }
  const int unused = step.field.is_signed ? 64 - step.field.width : 0;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

void put_at(std::string& text, const Step& step, std::int64_t value) {
  const auto width = static_cast<std::size_t>(step.field.width);
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
  const auto& field = step.field;
  if (sum >= field.least() && sum <= field.most()) return static_cast<std::int64_t>(sum);
  if (step.overflow == Overflow::refuse) return std::nullopt;
  if (step.overflow == Overflow::saturate)
    return static_cast<std::int64_t>(sum < field.least() ? field.least() : field.most());
  const int unused = 64 - field.width;
  const auto bits = static_cast<std::uint64_t>(sum) << unused;
  return field.is_signed ? static_cast<std::int64_t>(bits) >> unused
                         : static_cast<std::int64_t>(bits >> unused);
}

void perform(Context& context, const Step& step, std::string* text, Reply& reply) {
  const auto old = value_at(text ? std::string_view{*text} : std::string_view{}, step);
  if (step.verb == Verb::get) return reply.integer(old);
  // A SET to an unsigned field takes the operand's bits, so that -1 overflows upwards.
  const Wide operand = step.verb == Verb::set && !step.field.is_signed
                           ? static_cast<Wide>(static_cast<std::uint64_t>(step.operand))
                           : static_cast<Wide>(step.operand);
  const auto value = fitted(step.verb == Verb::add ? Wide{old} + operand : operand, step);
  if (!value) return reply.null();
  put_at(*text, step, *value);
  context.changed();
  reply.integer(step.verb == Verb::add ? *value : old);
}

void run(Context& context, Words words, bool may_write, Reply& reply) {
  std::vector<Step> steps;
  if (!read_steps(words, may_write, steps, reply)) return;
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  std::size_t needed = 0;
  for (const auto& step : steps)
    if (step.verb != Verb::get)
      needed = std::max(needed, (step.offset + static_cast<std::size_t>(step.field.width) + 7) / 8);
  if (needed > 0) {
    if (!text) text = as<std::string>(context.keys().put(words[1], std::string{}));
    if (text->size() < needed) {
      text->resize(needed);  // also where every step fails: then this is the change (Redis forgets
                             // to log it)
      context.changed();
    }
  }
  reply.array(steps.size());
  for (const auto& step : steps) perform(context, step, text, reply);
}

void bitfield(Context& context, Words words, Reply& reply) { run(context, words, true, reply); }
void bitfield_ro(Context& context, Words words, Reply& reply) { run(context, words, false, reply); }

constexpr Handlers::Row rows[] = {{"bitfield", bitfield}, {"bitfield_ro", bitfield_ro}};

}  // namespace

void add_bitfield_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
