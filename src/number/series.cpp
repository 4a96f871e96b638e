#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/base64.hpp"
#include "base/sha256.hpp"
#include "number/layout.hpp"
#include "number/period.hpp"
#include "number/series.lua.hpp"
#include "sluice/metrics.hpp"
#include "sluice/number.hpp"
#include "store/combiner.hpp"
#include "store/durable.hpp"
#include "store/key_name.hpp"

namespace sluice {
namespace {

/// A day of records is some 30 bytes.
constexpr std::chrono::hours least_kept{24};
constexpr std::chrono::hours most_kept{24 * 3660};

std::string shown(std::string_view name) {
  return name.size() <= 200 ? std::string{name} : fmt::format("{}...", name.substr(0, 200));
}

/// Braces mark what Redis Cluster puts into one slot; all keys of a series must lie in the same.
void check_tag(std::string_view name) {
  check_own_keys("series", name);
  if (!has_whole_tag_or_none(name))
    throw Error{Errc::bad_argument,
                fmt::format("series '{}': braces in a name are a whole tag, as in '{{shop}}:INV', "
                            "or its keys would lie in different slots of a cluster",
                            shown(name))};
}

}  // namespace

/// What all calls of a Series share. A raise() under way outlives the Series.
class Series::Core {
 public:
  using Outcome = Expected<Number, SeriesFull>;

  Core(Store& store, std::string name, SeriesOptions options)
      : store_(store),
        name_(std::move(name)),
        options_(std::move(options)),
        calendar_(options_.zone),
        largest_(number::largest_of(options_.digits)),
        definition_(number::definition_of(options_.zone, options_.digits)),
        combiner_(store.driver(), most_together,
                  [this](std::vector<Ask> asks) { return draw(std::move(asks)); }) {
    if (options_.prefix.empty()) options_.prefix = name_;
  }

  Task<Outcome> next() { return combiner_.call(Ask::number); }

  /// Not with other calls: what it got is kept for its copies.
  Task<Expected<std::vector<Number>, SeriesFull>> next_of(std::string wish, std::size_t count) {
    auto table = calendar_.around(store_.clock().wall());
    const auto kept = key_with_suffix(name_, "wish:" + base64url(sha256(wish)));
    auto drawn = draw(count, table, kept);
    auto outcomes = co_await drawn;
    if (!outcomes.front()) co_return Unexpected{std::move(outcomes.front().error())};
    std::vector<Number> numbers;
    for (auto& outcome : outcomes)
      if (outcome) numbers.push_back(std::move(*outcome));
    co_return numbers;
  }

  /// Tells the store the latest number that was given here: it may have forgotten it. Never throws.
  static Task<void> raise(std::shared_ptr<Core> core) {
    if (!core->has_given_ || core->is_raising_.exchange(true)) co_return;
    try {
      auto asked = core->combiner_.call(Ask::raise);
      (void)co_await asked;
    } catch (const Error&) {  // the next number is asked for with the same word
    }
    core->is_raising_ = false;
  }

 private:
  enum class Ask : std::uint8_t { number, raise };
  static constexpr std::size_t most_together = 4096;

  struct Answer {
    Value reply;
    Copies copies;
  };

  Task<std::vector<Outcome>> draw(std::vector<Ask> asks) {
    const auto count = static_cast<std::size_t>(std::ranges::count(asks, Ask::number));
    auto drawn = draw(count);
    auto numbers = co_await drawn;
    if (count == asks.size()) co_return numbers;
    std::vector<Outcome> outcomes;
    auto next = numbers.begin();
    for (const Ask ask : asks)
      outcomes.push_back(ask == Ask::number ? std::move(*next++) : Unexpected{SeriesFull{}});
    co_return outcomes;
  }

  Task<std::vector<Outcome>> draw(std::size_t count) {
    // The application's clock is only the first guess at where the server's is; the reply corrects
    // it.
    if (!table_) table_ = calendar_.around(store_.clock().wall());
    return draw(count, *table_, {});
  }

  /// `kept`: the key of what a wish gets; empty: it is none.
  Task<std::vector<Outcome>> draw(std::size_t count, PeriodTable& table, std::string kept) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      auto asked = ask(count, table, kept);
      const Answer answer = co_await asked;
      const auto& parts = answer.reply.as_items();
      const auto& outcome = parts.at(0).as_text();
      if (outcome == "range") {
        table = calendar_.around(instant_of(parts.at(1)));
        continue;
      }
      if (outcome == "issued") {
        auto numbers = deal(parts, count);
        if (count > 0 && !answer.copies.are_enough(options_.durability))
          throw unsynced(answer.copies);
        co_return numbers;
      }
      if (outcome == "full") co_return refuse(parts, count);
      if (outcome == "other")
        throw Error{Errc::bad_argument,
                    fmt::format("series '{}': the same wish has asked for {} numbers before, and "
                                "now for {}",
                                shown(name_), parts.at(1).as_integer(), count)};
      if (outcome == "unset") throw number::clock_unset(name_, store_, parts.at(1).as_integer());
      if (outcome == "lost")
        throw Error{Errc::corrupt,
                    fmt::format("series '{}' in {} has given numbers of {}, and their count is "
                                "lost: find the last one in your own books, and tell it with "
                                "'sluice number {} repair --given N'",
                                name_, store_.describe(), parts.at(2).as_text(), name_)};
      throw Error{
          Errc::config_mismatch,
          fmt::format("series '{}' is defined as '{}' with prefix '{}' in {}, and here as "
                      "'{}' with prefix '{}' (period;zone;digits;layout): use the same options, or "
                      "another name",
                      name_, parts.at(1).as_text(), parts.at(2).as_text(), store_.describe(),
                      definition_, options_.prefix)};
    }
    throw Error{Errc::server, fmt::format("the clock of {} jumps: series '{}' finds no day for it",
                                          store_.describe(), name_)};
  }

  Task<Answer> ask(std::size_t count, const PeriodTable& table, const std::string& kept) {
    number::DayWords words{name_, table};
    const auto latest = this->latest();
    words.args.insert(words.args.end(),
                      {fmt::to_string(count), fmt::to_string(largest_), definition_,
                       options_.prefix, number::definition_before(options_.zone, options_.digits),
                       fmt::to_string(options_.keep / std::chrono::hours{24}), latest.period,
                       fmt::to_string(latest.sequence)});
    if (!kept.empty()) {
      words.keys.push_back(kept);
      words.args.push_back(fmt::to_string(Series::wish_kept / std::chrono::milliseconds{1}));
    }
    const Script& script = kept.empty() ? scripts::number_next : scripts::number_next_of_wish;
    const std::vector<std::string_view> keys{words.keys.begin(), words.keys.end()};
    const std::vector<std::string_view> args{words.args.begin(), words.args.end()};
    const Durability& durability = options_.durability;
    if (durability.replicas == 0) {
      // A copy of a wish is known.
      auto asked = store_.run(script, Words{keys}, Words{args}, {.repeatable = !kept.empty()});
      Value reply = co_await asked;
      co_return Answer{std::move(reply), {}};
    }
    auto asked = run_durably(store_, {{script, Words{keys}, Words{args}}}, durability,
                             {.repeatable = !kept.empty()});
    DurableReplies answer = co_await asked;
    co_return Answer{std::move(answer.replies.front()), std::move(answer.copies)};
  }

  Error unsynced(const Copies& copies) const {
    return Error{
        Errc::unsynced,
        fmt::format("series '{}' in {} has given numbers, but {}; they are given to nobody", name_,
                    store_.describe(), copies.shortfall(options_.durability)),
        Effect::done};
  }

  static WallTime instant_of(const Value& microseconds) {
    return WallTime{std::chrono::microseconds{microseconds.as_integer()}};
  }

  SeriesFull full(const Value& now, const Value& period) const {
    return {.period = period.as_text(), .largest = largest_, .refused_at = instant_of(now)};
  }

  std::vector<Outcome> deal(const Value::Items& parts, std::size_t count) {
    const WallTime issued_at = instant_of(parts.at(1));
    const SeriesFull rest = full(parts.at(1), parts.at(2));
    const std::int64_t first = parts.at(3).as_integer();
    const std::int64_t granted = parts.at(4).as_integer();
    note({rest.period, first + granted - 1});
    std::vector<Outcome> outcomes;
    outcomes.reserve(count);
    for (std::int64_t i = 0; i < granted; ++i) {
      outcomes.emplace_back(Number{.text = fmt::format("{}{}{:0{}}", options_.prefix, rest.period,
                                                       first + i, options_.digits),
                                   .period = rest.period,
                                   .sequence = first + i,
                                   .issued_at = issued_at});
    }
    sluice::count(metrics().numbers_issued, outcomes.size());
    sluice::count(metrics().numbers_full, count - outcomes.size());
    while (outcomes.size() < count) outcomes.emplace_back(Unexpected{rest});
    return outcomes;
  }

  std::vector<Outcome> refuse(const Value::Items& parts, std::size_t count) const {
    sluice::count(metrics().numbers_full, count);
    return std::vector<Outcome>(count, Unexpected{full(parts.at(1), parts.at(2))});
  }

  struct Latest {
    std::string period;
    std::int64_t sequence = 0;  // of that period: the latest number that was given here
  };

  Latest latest() const {
    const std::lock_guard lock{mutex_};
    return latest_;
  }
  /// A wish that was answered again has older numbers.
  void note(Latest given) {
    const std::lock_guard lock{mutex_};
    has_given_ = true;
    if (std::tie(latest_.period, latest_.sequence) < std::tie(given.period, given.sequence))
      latest_ = std::move(given);
  }

  Store& store_;
  const std::string name_;
  SeriesOptions options_;
  const Calendar calendar_;
  const std::int64_t largest_;
  const std::string definition_;
  std::optional<PeriodTable> table_;  // used by one batch at a time
  mutable std::mutex mutex_;
  Latest latest_;  // guarded by mutex_
  std::atomic<bool> has_given_{false};
  std::atomic<bool> is_raising_{false};
  Combiner<Ask, Outcome> combiner_;
};

class Series::Impl {
 public:
  Impl(Store& store, std::string name, SeriesOptions options)
      : core_(std::make_shared<Core>(store, std::move(name), std::move(options))),
        watch_(store.watch_connection([core = core_] { spawn(Core::raise(core)); })) {}

  Task<Core::Outcome> next() { return core_->next(); }
  Task<Expected<std::vector<Number>, SeriesFull>> next_of(std::string wish, std::size_t count) {
    return core_->next_of(std::move(wish), count);
  }

 private:
  const std::shared_ptr<Core> core_;
  const Listener watch_;
};

Series::Series(Store& store, std::string name, SeriesOptions options) {
  if (name.empty()) throw Error{Errc::bad_argument, "a series needs a name"};
  checked(options.durability);
  if (options.digits < 1 || options.digits > 15)
    throw Error{Errc::bad_argument, fmt::format("series '{}': digits is {}, it must be 1 to 15",
                                                shown(name), options.digits)};
  if (options.keep < least_kept || options.keep > most_kept)
    throw Error{Errc::bad_argument,
                fmt::format("series '{}': keep is {} hours, it must be {} to {}", shown(name),
                            options.keep.count(), least_kept.count(), most_kept.count())};
  check_tag(name);
  impl_ = std::make_unique<Impl>(store, std::move(name), std::move(options));
}

Series::~Series() = default;
Series::Series(Series&&) noexcept = default;
Series& Series::operator=(Series&&) noexcept = default;

Task<Expected<Number, SeriesFull>> Series::next() { return impl_->next(); }

Task<Expected<std::vector<Number>, SeriesFull>> Series::next_of(std::string wish,
                                                                std::size_t count) {
  if (wish.empty() || count < 1 || count > most_of_wish)
    throw Error{Errc::bad_argument,
                fmt::format("a wish has a name, and asks for 1 to {} numbers", most_of_wish)};
  return impl_->next_of(std::move(wish), count);
}

}  // namespace sluice
