#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "base/json_value.hpp"
#include "base/random.hpp"
#include "cli/demo/crowd.hpp"
#include "cli/demo/instance.hpp"
#include "cli/load/load_test.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

/// The processes that serve; they are told to stop when the sale is over, or when something threw.
class Served {
 public:
  /// Their URLs may hold passwords, and a process title is for all to see: they go by the
  /// environment.
  explicit Served(const ServedPlan& plan) {
    ::setenv("SLUICE_STORE", plan.store.c_str(), 1);
    ::setenv("SLUICE_ORDERS", plan.orders.c_str(), 1);
    for (int i = 0; i < plan.instances; ++i)
      all_.push_back(std::make_unique<Instance>(
          std::vector<std::string>{"sluice", "serve", "--listen", "127.0.0.1:0", "--health",
                                   "127.0.0.1:0", "--notice", "0s", "--json"}));
    for (const auto& one : all_) urls_.push_back(url_in(one->line()));
  }
  ~Served() { terminate(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  const std::vector<std::string>& urls() const noexcept { return urls_; }

  /// Their workers finish their batches.
  void stop() {
    terminate();
    for (const auto& one : all_)
      if (const int status = one->wait(); status != 0)
        throw std::runtime_error{fmt::format("an instance of the demo ended with {}", status)};
  }

 private:
  static std::string url_in(const std::string& greeting) {
    const auto told = JsonValue::parse(greeting, {});
    const auto* const url = told ? told->find("url") : nullptr;
    if (!url || !url->as_text())
      throw std::runtime_error{"an instance of the demo greeted with nonsense: " + greeting};
    return *url->as_text();
  }
  void terminate() const noexcept {
    for (const auto& one : all_) one->terminate();
  }

  std::vector<std::unique_ptr<Instance>> all_;
  std::vector<std::string> urls_;
};

/// What is neither an order nor a refusal as sold out is a fault in this sale.
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

}  // namespace

ServedSale hold_sale_over_http(const ServedPlan& plan, const std::stop_token& stop,
                               const std::function<void(const std::string&)>& progress) {
  Served served{plan};
  load::LoadOptions options;
  options.urls = served.urls();
  options.crowd.sale = plan.sale;
  options.crowd.buyers = plan.buyers;
  options.crowd.looks = false;
  options.crowd.repeats = 1.0 / 3;
  options.crowd.prefix = "buyer";
  options.crowd.seed = random_128()[0];
  options.patience = 10min;
  const auto report = load::run_load_test(options, stop, progress);
  served.stop();
  return {tally_of(report), report.lasted};
}

}  // namespace sluice::cli
