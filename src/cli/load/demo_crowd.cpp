/// The buyers of `sluice demo --http`: a load test whose last line the demo reads.
#include <algorithm>
#include <memory>

#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/demo/tally.hpp"
#include "cli/load/load_test.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

struct DemoCrowdArgs {
  std::string sale;
  std::uint64_t buyers = 0;
  std::vector<std::string> urls;
};

/// A click that is answered neither by an order nor as sold out is a fault in this sale.
Tally tally_of(const load::LoadReport& report) {
  const auto& clicks = report.tally.latencies[static_cast<std::size_t>(load::Step::click)];
  const auto orders = report.ledger.orders().size();
  const auto count = [&](load::Step step, std::string_view outcome) {
    return report.tally.count_of(step, outcome);
  };
  Tally tally;
  tally.clicks = clicks.count() + report.tally.answered_at(load::Step::repeat);
  tally.admitted = orders;
  tally.sold_out = count(load::Step::click, "409 sold-out");
  tally.repeats_same = report.tally.repeats_same;
  tally.repeats_other = report.ledger.breaches();
  tally.others =
      report.tally.arrived - std::min<std::uint64_t>(report.tally.arrived, orders + tally.sold_out);
  tally.latencies = clicks;
  for (const auto& [buyer, entry] : report.ledger.orders())
    tally.numbers.push_back(entry.order.number);
  tally.first_failure = report.ledger.evidence().empty() ? report.tally.first_trouble
                                                         : report.ledger.evidence()[0].evidence;
  return tally;
}

int buy_for_demo(const DemoCrowdArgs& args) {
  const StopOnSignal stop;
  load::LoadOptions options;
  options.urls = args.urls;
  options.crowd.sale = args.sale;
  options.crowd.buyers = args.buyers;
  options.crowd.looks = false;
  options.crowd.repeats = 1.0 / 3;
  options.crowd.prefix = "buyer";
  options.crowd.seed = random_128()[0];
  options.patience = 10min;
  const auto report = load::run_load_test(options, stop.token(), [](const std::string& line) {
    put("{}{}\n", progress_mark, line);
    flush_output();
  });
  put("{} {}\n", report.lasted.count(), line_of(tally_of(report)));
  return exit_ok;
}

}  // namespace

Command demo_crowd_command(const Globals&) {
  const auto args = std::make_shared<DemoCrowdArgs>();
  return {.name = "demo-crowd",
          .summary = "The buyers of the demo",
          .arguments = {{"SALE", "Its name", into(args->sale)},
                        {"BUYERS", "How many", into(args->buyers, 1, 10'000'000)},
                        {"URLS", "Where it is served", into(args->urls)}},
          .action = [args] { return buy_for_demo(*args); },
          .hidden = true};
}

}  // namespace sluice::cli
