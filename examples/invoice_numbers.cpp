/// Invoice numbers from one series, drawn by eight tills at once.
///   invoice_numbers [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/number.hpp>
#include <sluice/open.hpp>
#include <thread>
#include <vector>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Series invoices{*store, "INV", {.zone = "Europe/Berlin", .digits = 6}};

  std::vector<std::jthread> tills;
  for (int till = 1; till <= 8; ++till)
    tills.emplace_back([&invoices, till] {
      if (const auto number = invoices.next().get()) {
        fmt::print("till {}: {}\n", till, number->text);  // INV20260102000001
      } else {
        fmt::print("till {}: no number is left for {}\n", till, number.error().period);
      }
    });
}
