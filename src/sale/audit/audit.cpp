#include <fmt/format.h>

#include "sale/audit/auditor.hpp"
#include "sale/definition.hpp"
#include "store/info.hpp"

namespace sluice::sale {

SaleAudit Auditor::run() {
  counters_.read(store_, keys_);
  check("sale_is_loaded", counters_.exist() ? 1 : 0, 1, store_.describe());
  if (!counters_.exist()) return std::move(audit_);
  const bool is_archived = counters_.has("archived");
  if (!is_archived) check_gate();
  cut_ = counters_.last_id();
  audit_.admitted = counters_.number("orders");
  database_ = orders_.totals(sale_.name);
  in_database_ = orders_.stock(sale_.name).has_value();
  audit_.in_database = database_.orders;
  look_for_expiry();
  compare_list();
  if (is_archived) {
    walk_rows([](const auto&) {});
    compare_definition();
    compare_counters();
    report_archived();
    audit_.differences = differences_.take();
    return std::move(audit_);
  }
  read_ending();
  read_parts();
  walk_streams();
  walk_group();
  walk_records();
  look_again();
  look_at_buyers_again();
  walk_rows([&](const auto& rows) { compare_rows(rows); });
  walk_returns();
  compare_definition();
  compare_counters();
  report();
  tell_what_is_unknown();
  audit_.differences = differences_.take();
  return std::move(audit_);
}

/// Whether the store is the one that has admitted the orders so far.
void Auditor::check_gate() {
  Batch batch;  // where INFO may not be run, create() could not either
  add_info(batch, store_, keys_.sale, "replication");
  const auto here = store_id(store_.run(std::move(batch)).get().front());
  const auto note = [&](bool same, std::string detail) {
    check("store_is_the_same", same ? 1 : 0, 1, std::move(detail));
  };
  const auto advice = fmt::format("run 'sluice sale recover {}'", sale_.name);
  if (counters_.text("recovering") == shut_as_lost)
    note(false, "the store lost the sale, and it was created again: " + advice);
  else if (counters_.has("recovering"))
    note(false, "a recovery of it has not ended: let it end, or " + advice);
  else if (!counters_.has("store") && here.empty())
    note(true, "the store does not say which it is, so the sale has no gate");
  else if (counters_.text("store").empty())
    note(false, "the sale does not remember its store: " + advice);
  else
    note(counters_.text("store") == here,
         counters_.text("store") == here
             ? "no restart and no other server since the sale was created or recovered"
             : "it was started again, or another server took its place: " + advice);
}

}  // namespace sluice::sale

sluice::SaleAudit sluice::audit(Store& store, const Sale& sale, OrderStore& orders,
                                AuditOptions options) {
  return sale::Auditor{store, sale, orders, options}.run();
}
