#include "sale/admission.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sale/admit.lua.hpp"
#include "sale/differences.hpp"
#include "sale/records.hpp"
#include "sluice/metrics.hpp"

namespace sluice::sale {
namespace {

struct OutcomeRow {
  SaleOutcome outcome;
  char letter;  ///< in the reply of admit.lua
  std::string_view name;
};

constexpr OutcomeRow outcomes[] = {
    {SaleOutcome::admitted, 'A', "admitted"},
    {SaleOutcome::repeated, 'R', "repeated"},
    {SaleOutcome::other_units, '\0', "admitted before for other units"},  // told by admission_of()
    {SaleOutcome::cancelled, '\0', "cancelled"},                          // too
    {SaleOutcome::already_bought, 'B', "already bought"},
    {SaleOutcome::too_many_units, 'U', "too many units for one buyer"},
    {SaleOutcome::sold_out, 'S', "sold out"},
    {SaleOutcome::not_enough, 'E', "not enough left"},
    {SaleOutcome::full, 'F', "numbers used up"},
    {SaleOutcome::not_started, 'W', "not started"},
    {SaleOutcome::closed, 'C', "closed"},
    {SaleOutcome::moving, '\0', "its units are on their way"},  // told by BucketedSale
    {SaleOutcome::recovering, 'G', "recovering"},
    {SaleOutcome::not_loaded, 'N', "not loaded"},
};

std::string text_of(WallTime instant) { return fmt::to_string(instant.time_since_epoch().count()); }

constexpr char damaged_record = 'D';  ///< the same for a buyer whose record makes no order

}  // namespace

Admissions::Decision Admissions::decision_of(const std::string& text,
                                             const Purchase& purchase) const {
  const auto row =
      std::find_if(std::begin(outcomes), std::end(outcomes),
                   [&](const OutcomeRow& candidate) { return text.starts_with(candidate.letter); });
  if (row == std::end(outcomes) && !text.starts_with(damaged_record))
    throw Error{Errc::protocol, "the admission script answered '" + text + "'", Effect::unknown};
  std::optional<SaleOrder> order;
  if (text.size() > 1) order = order_of(std::string_view{text}.substr(1), purchase.buyer.value);
  if (text.starts_with(damaged_record) || (text.size() > 1 && !order))
    return {.admission = {},
            .failure = Error{
                Errc::corrupt,
                fmt::format("sale '{}': what {} has of buyer '{}' makes no order; "
                            "'sluice sale audit {}' names each damaged record, and "
                            "'sluice sale recover {}' mends what the database knows",
                            name_, store_.describe(), shown(purchase.buyer.value), name_, name_)}};
  Admission admission{.outcome = row->outcome, .order = std::move(order)};
  if (admission.outcome == SaleOutcome::repeated && admission.order) {
    if (!stands(admission.order->state))
      admission.outcome = SaleOutcome::cancelled;
    else if (admission.order->units != purchase.units)
      admission.outcome = SaleOutcome::other_units;
  }
  return {.admission = std::move(admission), .failure = {}};
}

Admissions::Admissions(Store& store, const SaleDefinition& sale)
    : store_(store),
      name_(sale.name),
      keys_(sale.name),
      calendar_(sale.zone),
      combiner_(store.driver(), most_together, [this](std::vector<Purchase> purchases) {
        return decide_all(std::move(purchases));
      }) {}

Task<Admission> Admissions::decide(BuyerId buyer, RequestId request, std::int64_t units) {
  return combiner_.call(Purchase{std::move(buyer), std::move(request), units});
}

Task<std::vector<Admissions::Decision>> Admissions::decide_all(std::vector<Purchase> purchases) {
  // The application's clock is only the first guess at where the server's is; the reply corrects
  // it.
  if (!days_) days_ = calendar_.around(store_.clock().wall());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Value reply = co_await ask(purchases);
    const auto& items = reply.as_items();
    if (items.size() == 2 && items[0].as_text() == "range") {
      days_ = calendar_.around(WallTime{std::chrono::microseconds{items[1].as_integer()}});
      continue;
    }
    if (items.size() == 3 && items[0].as_text() == "damaged")
      throw Error{
          Errc::corrupt,
          fmt::format("sale '{0}': its {1} is '{2}' in {3}, which no sale writes; 'sluice "
                      "sale recover {0}' mends it from the database",
                      name_, items[1].as_text(), shown(items[2].as_text()), store_.describe())};
    if (items.size() != purchases.size())
      throw Error{Errc::protocol,
                  fmt::format("sale '{}': {} requests were answered by {}", name_, purchases.size(),
                              to_string(reply)),
                  Effect::unknown};
    std::vector<Decision> decisions;
    decisions.reserve(items.size());
    std::uint64_t admitted = 0;
    std::uint64_t repeated = 0;
    std::uint64_t failed = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      decisions.push_back(decision_of(items[i].as_text(), purchases[i]));
      if (decisions.back().failure) {
        ++failed;
        continue;
      }
      const auto outcome = decisions.back().admission.outcome;
      admitted += outcome == SaleOutcome::admitted;
      repeated += outcome == SaleOutcome::repeated || outcome == SaleOutcome::other_units ||
                  outcome == SaleOutcome::cancelled;
    }
    count(metrics().sale_admitted, admitted);
    count(metrics().sale_refused, items.size() - admitted - repeated - failed);
    co_return decisions;
  }
  throw Error{Errc::server, fmt::format("the clock of {} jumps: sale '{}' finds no day for it",
                                        store_.describe(), name_)};
}

Task<Value> Admissions::ask(const std::vector<Purchase>& purchases) {
  std::vector<std::string> numbers{fmt::to_string(days_->periods.size()), text_of(days_->end)};
  for (const auto& day : days_->periods) {
    numbers.push_back(text_of(day.start));
    numbers.push_back(day.label);
  }
  const std::size_t of_days = numbers.size();
  for (const auto& purchase : purchases) numbers.push_back(fmt::to_string(purchase.units));

  std::vector<std::string_view> args{numbers.begin(),
                                     numbers.begin() + static_cast<std::ptrdiff_t>(of_days)};
  args.reserve(of_days + 3 * purchases.size());
  for (std::size_t i = 0; i < purchases.size(); ++i) {
    args.push_back(purchases[i].buyer.value);
    args.push_back(purchases[i].request.value);
    args.push_back(numbers[of_days + i]);
  }
  const std::vector<std::string_view> keys{keys_.sale, keys_.buyers, keys_.requests, keys_.orders};
  return store_.run(scripts::sale_admit, Words{keys}, Words{args}, repeatable);
}

}  // namespace sluice::sale

std::string_view sluice::to_string(SaleOutcome outcome) noexcept {
  for (const auto& row : sale::outcomes)
    if (row.outcome == outcome) return row.name;
  return "?";
}
