#include "cli/load/load_test.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "cli/load/target.hpp"
#include "sluice/clock.hpp"
#include "sluice/error.hpp"

namespace sluice::load {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Of the highest rate, in the measurement that follows it.
constexpr double share_of_the_highest = 0.7;
/// After a signal, for the answers that are under way.
constexpr auto farewell_time = 2s;
constexpr auto turn_time = 50ms;
constexpr auto audit_time = 60s;
constexpr std::size_t audit_connections = 16;  // each look waits for the database

double seconds_of(nanoseconds time) {
  return std::max(std::chrono::duration<double>(time).count(), 1e-6);
}

double ms_of(std::chrono::microseconds time) { return static_cast<double>(time.count()) / 1000; }

/// A line a second of what came since the last one.
class Watch {
 public:
  Watch(const Crowd& crowd, const LoadProgress& progress, SteadyTime begins, std::string_view what)
      : crowd_(crowd), progress_(progress), what_(what), begins_(begins), last_(begins) {}

  void look(SteadyTime now) {
    if (now - last_ < 1s) return;
    const auto& tally = crowd_.tally();
    const auto& clicks = tally.latencies[static_cast<std::size_t>(Step::click)];
    const auto recent = clicks.since(before_);
    progress_(fmt::format(
        "{} {:3.0f} s  {:6.0f} clicks/s  p50 {:.2f} ms  p99 {:.2f} ms  {} orders, {} broken, {} "
        "buyers here",
        what_, seconds_of(now - begins_),
        static_cast<double>(recent.count()) / seconds_of(now - last_), ms_of(recent.quantile(0.5)),
        ms_of(recent.quantile(0.99)), tally.admitted, tally.broken, crowd_.active()));
    before_ = clicks;
    last_ = now;
  }

 private:
  const Crowd& crowd_;
  const LoadProgress& progress_;
  const std::string what_;
  const SteadyTime begins_;
  SteadyTime last_;
  LatencyCounts before_;
};

class LoadTest {
 public:
  LoadTest(const LoadOptions& options, std::stop_token stop, const LoadProgress& progress)
      : options_(options),
        stop_(std::move(stop)),
        progress_(progress),
        clock_(system_clock()),
        targets_(targets_of(options.urls, options.allows_remote)) {
    options_.crowd.host = net::to_string(targets_.all.front().endpoint);
    if (targets_.are_tls) {
      options_.wire.tls = std::make_shared<net::TlsClient>(net::TlsClientOptions{
          .files = {.certificate = {}, .key = {}, .ca = options_.ca}, .server_name = {}});
    }
    wire_.emplace(clock_, targets_.all, options_.wire);
    report_.seed = options_.crowd.seed;
    report_.prefix = options_.crowd.prefix;
  }

  LoadReport run() {
    report_.before = look_at_sale();
    if (options_.finds_rate) find_rate();
    measure();
    if (!stop_.stop_requested() || report_.tally.arrived > 0) compare();
    if (options_.audits && !stop_.stop_requested()) audit();
    report_.is_complete = !stop_.stop_requested();
    note_unseen();
    return std::move(report_);
  }

 private:
  Crowd crowd_of(CrowdPlan plan, std::string_view part) {
    plan.prefix += part;
    Crowd crowd{std::move(plan), report_.ledger, clock_.steady(), clock_.wall()};
    crowd.set_may_end(report_.before && report_.before->has_price);
    return crowd;
  }

  /// Until everybody has left, or patience is over.
  void hold(Crowd& crowd, std::string_view what, SteadyTime until) {
    Watch watch{crowd, progress_, clock_.steady(), what};
    auto ends = until;
    bool leaving = false;
    while (!crowd.is_over() && clock_.steady() < ends) {
      if (!leaving && stop_.stop_requested()) {
        leaving = true;
        ends = std::min(ends, clock_.steady() + farewell_time);
        crowd.close();
      }
      wire_->turn(crowd, turn_time);
      watch.look(clock_.steady());
    }
    wire_->drop_unanswered();
    crowd.end(clock_.steady());
  }

  std::optional<ToldSale> look_at_sale() {
    auto plan = options_.crowd;
    plan.rate = 0;
    plan.buyers = 1;
    plan.looks = true;
    plan.buys = false;
    plan.slow = 0;
    auto scout = crowd_of(plan, "-scout");
    hold(scout, "looking", clock_.steady() + options_.patience);
    if (scout.sale()) return scout.sale();
    if (stop_.stop_requested()) return {};
    const auto& answers = scout.tally().outcomes[static_cast<std::size_t>(Step::look)];
    const auto what = answers.empty() ? std::string{"no answer"} : answers.rbegin()->first;
    if (scout.tally().answered == 0)
      throw Error{Errc::connection,
                  fmt::format("nobody serves sales at {}: {}", options_.urls.front(), what),
                  Effect::none};
    throw Error{Errc::bad_argument,
                fmt::format("{} does not show the sale '{}': it answers {}", options_.urls.front(),
                            plan.sale, what),
                Effect::none};
  }

  /// So many connections ask as soon as they may: what is answered then is the most there is.
  void find_rate() {
    auto plan = options_.crowd;
    plan.rate = -1;
    plan.think = 0ns;
    plan.slow = 0;
    plan.lasts = std::max<nanoseconds>(plan.lasts / 2, 1s);
    auto crowd = crowd_of(plan, "-most");
    const auto begins = clock_.steady();
    hold(crowd, "how many", begins + plan.lasts + options_.patience);
    const auto took = std::min<nanoseconds>(clock_.steady() - begins, plan.lasts + 1s);
    report_.highest = static_cast<double>(crowd.tally().decided) / seconds_of(took);
    if (report_.highest < 1 && !stop_.stop_requested())
      throw Error{Errc::connection,
                  fmt::format("no click was answered: {}", crowd.tally().first_trouble),
                  Effect::unknown};
    options_.crowd.rate = std::max(1.0, report_.highest * share_of_the_highest);
  }

  void measure() {
    if (stop_.stop_requested()) return;
    report_.rate = options_.crowd.rate;
    auto crowd = crowd_of(options_.crowd, "");
    const auto begins = clock_.steady();
    const auto coming = options_.crowd.rate > 0 ? options_.crowd.lasts : 0ns;
    hold(crowd, "buying", begins + coming + options_.patience);
    report_.lasted = clock_.steady() - begins;
    report_.tally = crowd.tally();
  }

  void compare() {
    const auto stop = std::exchange(stop_, {});  // one look more does no harm
    try {
      report_.after = look_at_sale();
    } catch (const Error&) {  // it was there before: what became of it is in the report
    }
    stop_ = stop;
    if (report_.before && report_.after)
      report_.ledger.compare(*report_.before, *report_.after, options_.alone);
  }

  void audit() {
    options_.wire.connections = std::min(options_.wire.connections, audit_connections);
    wire_.emplace(clock_, targets_.all, options_.wire);
    auto crowd = crowd_of(options_.crowd, "");
    crowd.check_orders(clock_.steady(), clock_.steady() + options_.patience);
    hold(crowd, "looking at orders", clock_.steady() + options_.patience + audit_time);
    report_.checks = crowd.tally();
    is_audited_ = true;
  }

  /// Who holds nothing against a promise must not say that it was kept.
  void note_unseen() {
    const auto& checks = report_.checks;
    if (!report_.after) report_.unseen.push_back("how the sale stands afterwards");
    if (report_.tally.decided == 0)
      report_.unseen.push_back(
          report_.tally.count_of(Step::click, "403 not-inside") > 0
              ? "a purchase: the sale has a waiting room, which --queue goes through"
              : "a purchase: no click had a last answer of the sale");
    if (options_.audits && !is_audited_)
      report_.unseen.push_back("the orders, one by one");
    else if (checks.given_up > 0)
      report_.unseen.push_back(
          fmt::format("{} orders that could not be looked at", checks.given_up));
  }

  LoadOptions options_;
  std::stop_token stop_;
  const LoadProgress& progress_;
  Clock& clock_;
  const LoadTargets targets_;
  std::optional<Wire> wire_;
  LoadReport report_;
  bool is_audited_ = false;
};

struct Row {
  std::string name;
  const LatencyCounts* latencies;
};

std::vector<Row> rows_of(const LoadReport& report) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < steps; ++i)
    rows.push_back({std::string{to_string(static_cast<Step>(i))}, &report.tally.latencies[i]});
  rows.push_back({"purchase, with retries", &report.tally.purchases});
  rows.push_back({"what was sent slowly", &report.tally.slow});
  rows.push_back({"audit", &report.checks.latencies[static_cast<std::size_t>(Step::check)]});
  std::erase_if(rows, [](const Row& row) { return row.latencies->count() == 0; });
  return rows;
}

Json json_of(const LatencyCounts& times) {
  return Json::object({{"count", times.count()},
                       {"mean_ms", ms_of(times.mean())},
                       {"p50_ms", ms_of(times.quantile(0.5))},
                       {"p90_ms", ms_of(times.quantile(0.9))},
                       {"p99_ms", ms_of(times.quantile(0.99))},
                       {"p999_ms", ms_of(times.quantile(0.999))},
                       {"most_ms", ms_of(times.quantile(1))}});
}

/// The last line.
std::string verdict_of(const LoadReport& report) {
  if (!report.is_sound())
    return fmt::format("{} BREACHES of what was promised; {} are shown", report.ledger.breaches(),
                       report.ledger.evidence().size());
  if (!report.is_seen())
    return fmt::format("no promise was seen broken, but this was not seen: {}",
                       fmt::join(report.unseen, "; "));
  if (!report.is_complete) return "no promise was broken until then";
  if (report.tally.given_up > 0)
    return fmt::format("every promise held to those who had an answer; {} had no last one",
                       report.tally.given_up);
  return "every promise held";
}

Json json_of(const std::optional<ToldSale>& sale) {
  if (!sale) return {};
  return Json::object({{"stock", sale->stock}, {"sold", sale->sold}});
}

}  // namespace

double LoadReport::clicks_per_second() const {
  return static_cast<double>(tally.clicks_answered) / seconds_of(lasted);
}

LoadReport run_load_test(const LoadOptions& options, const std::stop_token& stop,
                         const LoadProgress& progress) {
  return LoadTest{options, stop, progress}.run();
}

Json json_of(const LoadReport& report) {
  Json outcomes = Json::object(), latencies = Json::object(), evidence = Json::array();
  for (std::size_t i = 0; i < steps; ++i) {
    if (report.tally.outcomes[i].empty()) continue;
    Json some = Json::object();
    for (const auto& [what, count] : report.tally.outcomes[i]) some.add(what, count);
    outcomes.add(to_string(static_cast<Step>(i)), some);
  }
  for (const auto& row : rows_of(report)) latencies.add(row.name, json_of(*row.latencies));
  for (const auto& breach : report.ledger.evidence())
    evidence.add(Json::object({{"promise", breach.promise}, {"evidence", breach.evidence}}));
  const auto& tally = report.tally;
  Json unseen = Json::array();
  for (const auto& what : report.unseen) unseen.add(what);
  return Json::object({{"ok", report.is_sound() && report.is_seen()},
                       {"complete", report.is_complete},
                       {"seed", std::to_string(report.seed)},
                       {"buyers_named", report.prefix},
                       {"seconds", seconds_of(report.lasted)},
                       {"highest_per_second", report.highest},
                       {"rate", report.rate},
                       {"buyers", tally.arrived},
                       {"clicks_per_second", report.clicks_per_second()},
                       {"orders", report.ledger.orders().size()},
                       {"units", report.ledger.units()},
                       {"repeats_same", tally.repeats_same},
                       {"retries", tally.retries},
                       {"broken_connections", tally.broken},
                       {"given_up", tally.given_up},
                       {"trouble", tally.first_trouble},
                       {"before", json_of(report.before)},
                       {"after", json_of(report.after)},
                       {"outcomes", outcomes},
                       {"latencies", latencies},
                       {"unseen", unseen},
                       {"breaches", report.ledger.breaches()},
                       {"evidence", evidence}});
}

std::string text_of(const LoadReport& report) {
  std::string text;
  const auto add = [&]<class... Args>(fmt::format_string<Args...> form, Args&&... args) {
    text += fmt::format(form, std::forward<Args>(args)...);
  };
  const auto& tally = report.tally;
  if (!report.is_complete) add("ended by a signal; this is what there was until then\n");
  if (report.highest > 0)
    add("highest rate {:.0f} buyers/s; measured at 70 % of it\n", report.highest);
  add("seed {}, buyers {}-*\n", report.seed, report.prefix);
  add("{} buyers in {:.2f} s, {:.0f} clicks/s; {} orders of {} units, {} retries, {} broken "
      "connections, {} gave up\n\n",
      tally.arrived, seconds_of(report.lasted), report.clicks_per_second(),
      report.ledger.orders().size(), report.ledger.units(), tally.retries, tally.broken,
      tally.given_up);
  add("{:<24}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "ms", "count", "p50", "p90", "p99", "p99.9",
      "most");
  for (const auto& [name, times] : rows_of(report))
    add("{:<24}{:>10}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}\n", name, times->count(),
        ms_of(times->quantile(0.5)), ms_of(times->quantile(0.9)), ms_of(times->quantile(0.99)),
        ms_of(times->quantile(0.999)), ms_of(times->quantile(1)));
  add("\n");
  for (std::size_t i = 0; i < steps; ++i)
    for (const auto& [what, count] : tally.outcomes[i])
      add("  {:<20}{:<36}{:>10}\n", to_string(static_cast<Step>(i)), what, count);
  if (!tally.first_trouble.empty()) add("  first trouble: {}\n", tally.first_trouble);
  add("\n");
  for (const auto& breach : report.ledger.evidence())
    add("BROKEN: {}: {}\n", breach.promise, breach.evidence);
  return text + verdict_of(report);
}

}  // namespace sluice::load
