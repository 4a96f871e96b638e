// Unions, intersections and differences of sorted sets, and of sets, whose members have the
// score 1.
#include <fmt/format.h>

#include <cmath>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// One input: a sorted set, a set, or nothing.
struct Input {
  const SortedSet* zset = nullptr;
  const Set* set = nullptr;
  double weight = 1;

  std::size_t size() const noexcept { return zset ? zset->size() : set ? set->size() : 0; }
  std::optional<double> score(std::string_view member) const {
    if (zset) return zset->score(member);
    return set && set->contains(member) ? std::optional{1.0} : std::nullopt;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (zset) zset->for_each(visit);
    if (set) set->for_each([&](std::string_view member) { visit(Scored{member, 1.0}); });
  }
  double weighted(double score) const noexcept {
    const double product = score * weight;
    return std::isnan(product) ? 0 : product;  // inf * 0
  }
};

enum class Aggregate { sum, min, max };
constexpr Choice<Aggregate> aggregates[] = {
    {"sum", Aggregate::sum}, {"min", Aggregate::min}, {"max", Aggregate::max}};

double aggregated(Aggregate aggregate, double one, double other) noexcept {
  if (aggregate == Aggregate::min) return std::min(one, other);
  if (aggregate == Aggregate::max) return std::max(one, other);
  const double sum = one + other;
  return std::isnan(sum) ? 0 : sum;  // inf - inf
}

struct Combination {
  std::vector<Input> inputs;
  Aggregate aggregate = Aggregate::sum;
  bool scores = false;
  std::int64_t limit = 0;
};

/// What a command does with its inputs, and which options it knows.
struct Form {
  void (*combine)(Context& context, const Combination& from, SortedSet& result);
  std::string_view name;
  bool weights = true;  ///< WEIGHTS and AGGREGATE
  bool scores = true;   ///< WITHSCORES
  bool limit = false;   ///< LIMIT
};

Input input_at(Context& context, std::string_view key) {
  Input input;
  Object* object = find(context, key);
  if (!object) return input;
  input.zset = as<SortedSet>(*object);
  input.set = as<Set>(*object);
  if (!input.zset && !input.set) refuse(wrong_type);
  return input;
}

void read_options(Words options, const Form& form, Combination& out) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto left = options.size() - i - 1;
    if (form.weights && is_word(options[i], "weights") && left >= out.inputs.size()) {
      for (auto& input : out.inputs)
        input.weight = read_double(options[++i], "ERR weight value is not a float");
    } else if (form.weights && is_word(options[i], "aggregate") && left >= 1) {
      if (!choose(options[++i], aggregates, out.aggregate)) refuse(syntax_error);
    } else if (form.scores && is_word(options[i], "withscores")) {
      out.scores = true;
    } else if (form.limit && is_word(options[i], "limit") && left >= 1) {
      out.limit =
          read_integer_between(options[++i], 0, largest_integer, "ERR LIMIT can't be negative");
    } else {
      refuse(syntax_error);
    }
  }
}

/// `words`: numkeys, keys, options.
Combination read(Context& context, Words words, const Form& form) {
  const auto count = read_integer(words[0]);
  if (count < 1)
    refuse(fmt::format("ERR at least 1 input key is needed for '{}' command", form.name));
  if (static_cast<std::uint64_t>(count) > words.size() - 1) refuse(syntax_error);
  const auto keys = words.subspan(1, static_cast<std::size_t>(count));
  Combination out;
  for (const auto& key : keys) out.inputs.push_back(input_at(context, key));
  read_options(words.subspan(1 + keys.size()), form, out);
  return out;
}

void unite(Context& context, const Combination& from, SortedSet& result) {
  for (const auto& input : from.inputs)
    input.for_each([&](const Scored& item) {
      context.spend(2);
      const auto old = result.score(item.member);
      const auto score = input.weighted(item.score);
      result.set(item.member, old ? aggregated(from.aggregate, *old, score) : score, nullptr);
    });
}

/// Stops at `from.limit` members where it is not 0.
void intersect(Context& context, const Combination& from, SortedSet& result) {
  auto inputs = from.inputs;
  std::ranges::stable_sort(inputs, {}, &Input::size);
  const auto limit = from.limit == 0 ? SIZE_MAX : static_cast<std::size_t>(from.limit);
  inputs.front().for_each([&](const Scored& item) {
    context.spend(inputs.size());
    if (result.size() >= limit) return;
    double sum = inputs.front().weighted(item.score);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const auto score = inputs[i].score(item.member);
      if (!score) return;
      sum = aggregated(from.aggregate, sum, inputs[i].weighted(*score));
    }
    result.set(item.member, sum, nullptr);
  });
}

void subtract(Context& context, const Combination& from, SortedSet& result) {
  from.inputs.front().for_each([&](const Scored& item) {
    context.spend(from.inputs.size());
    const auto has = [&](const Input& input) { return input.score(item.member).has_value(); };
    if (std::none_of(from.inputs.begin() + 1, from.inputs.end(), has))
      result.set(item.member, item.score, nullptr);
  });
}

constexpr Form unions{unite, "zunion"};
constexpr Form intersections{intersect, "zinter"};
constexpr Form differences{subtract, "zdiff", false};
constexpr Form union_stores{unite, "zunionstore", true, false};
constexpr Form intersection_stores{intersect, "zinterstore", true, false};
constexpr Form difference_stores{subtract, "zdiffstore", false, false};
constexpr Form cardinalities{intersect, "zintercard", false, false, true};

template <const Form& form>
void tell(Context& context, Words words, Reply& reply) {
  const auto from = read(context, words.subspan(1), form);
  SortedSet result;
  form.combine(context, from, result);
  PairReply pairs{reply, result.size(), from.scores, nests_pairs(context)};
  result.for_each([&](const Scored& item) { pairs.add(item); });
}

template <const Form& form>
void store(Context& context, Words words, Reply& reply) {
  const auto from = read(context, words.subspan(2), form);
  auto result = std::make_unique<SortedSet>();
  form.combine(context, from, *result);
  store_result(context, words[1], std::move(result), true, reply);
}

void zintercard(Context& context, Words words, Reply& reply) {
  SortedSet result;
  intersect(context, read(context, words.subspan(1), cardinalities), result);
  reply.count(result.size());
}

}  // namespace

CommandRows sorted_set_store_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"zdiff", tell<differences>},
      {"zdiffstore", store<difference_stores>},
      {"zinter", tell<intersections>},
      {"zintercard", zintercard},
      {"zinterstore", store<intersection_stores>},
      {"zunion", tell<unions>},
      {"zunionstore", store<union_stores>},
  };
  return rows;
}

}  // namespace sluice::engine
