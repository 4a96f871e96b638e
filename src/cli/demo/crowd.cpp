#include "cli/demo/crowd.hpp"

#include <fmt/format.h>

#include <thread>

#include "sluice/when_all.hpp"

namespace sluice::cli {
namespace {

/// The buyers of one thread. Their coroutines all run on it, so the tally needs no lock.
class Stand {
 public:
  Stand(Sale& sale, Clock& clock, std::stop_token stop, std::atomic<std::uint64_t>& answered)
      : sale_(sale), clock_(clock), stop_(std::move(stop)), answered_(answered) {}

  Tally serve(std::uint64_t first, std::uint64_t last) {
    std::vector<Task<void>> buyers;
    for (auto buyer = first; buyer < last; ++buyer) buyers.push_back(visit(buyer));
    when_all(std::move(buyers)).get();
    return std::move(tally_);
  }

 private:
  /// Clicks once; a third of the buyers click again with the same request, a ninth a third time
  /// with a new one.
  Task<void> visit(std::uint64_t buyer) {
    const std::string name = fmt::format("buyer-{:06}", buyer);
    const std::string request = name + "-click";
    const auto first = co_await click(name, request);
    if (!first) co_return;
    count_first(*first);
    if (buyer % 3 == 0) {
      if (const auto answer = co_await click(name, request)) count_repeat(*first, *answer);
    }
    if (buyer % 9 == 0) {
      if (const auto answer = co_await click(name, request + "-new")) count_other(*answer);
    }
  }

  Task<std::optional<Admission>> click(std::string buyer, std::string request) {
    if (stop_.stop_requested()) co_return std::nullopt;
    const auto start = clock_.steady();
    ++tally_.clicks;
    std::optional<Admission> answer;
    try {
      auto asked = sale_.buy(BuyerId{std::move(buyer)}, RequestId{std::move(request)});
      answer = co_await asked;
    } catch (const Error& error) {
      ++tally_.failed;
      if (tally_.first_failure.empty()) tally_.first_failure = error.message();
    }
    tally_.latencies.observe(clock_.steady() - start);
    answered_.fetch_add(1, std::memory_order_relaxed);
    co_return answer;
  }

  void count_first(const Admission& answer) {
    if (answer.outcome != SaleOutcome::admitted) return count_other(answer);
    ++tally_.admitted;
    tally_.numbers.push_back(answer.order->number);
  }

  void count_repeat(const Admission& first, const Admission& answer) {
    if (first.outcome != SaleOutcome::admitted) return count_other(answer);
    const bool same = answer.outcome == SaleOutcome::repeated && answer.order == first.order;
    ++(same ? tally_.repeats_same : tally_.repeats_other);
  }

  void count_other(const Admission& answer) {
    switch (answer.outcome) {
      case SaleOutcome::sold_out: ++tally_.sold_out; return;
      case SaleOutcome::already_bought: ++tally_.bought_already; return;
      default: ++tally_.others; return;
    }
  }

  Sale& sale_;
  Clock& clock_;
  const std::stop_token stop_;
  std::atomic<std::uint64_t>& answered_;
  Tally tally_;
};

}  // namespace

Tally hold_sale(Sale& sale, Clock& clock, const Crowd& crowd,
                std::atomic<std::uint64_t>& answered) {
  const auto stands = static_cast<std::uint64_t>(std::max(crowd.threads, 1));
  std::vector<Tally> tallies(stands);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < stands; ++i) {
      const auto all = crowd.last - crowd.first;
      threads.emplace_back([&, i, first = crowd.first + all * i / stands,
                            last = crowd.first + all * (i + 1) / stands] {
        tallies[i] = Stand{sale, clock, crowd.stop, answered}.serve(first, last);
      });
    }
  }
  Tally all;
  for (const auto& tally : tallies) all.add(tally);
  return all;
}

}  // namespace sluice::cli
