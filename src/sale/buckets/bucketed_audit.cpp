#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sale/buckets/shares.hpp"
#include "sale/sums.hpp"
#include "sluice/bucketed_sale.hpp"

namespace sluice {
namespace {

/// What no bucket can say of itself.
class WholeAudit {
 public:
  WholeAudit(Store& store, const BucketedSale& sale, OrderStore& orders)
      : sale_(sale), orders_(orders), shares_(store, sale.definition(), sale.buckets()) {}

  void run(SaleAudit& audit) {
    const auto look = shares_.look_at_one_instant().get();
    if (look)
      compare_shares(*look, audit);
    else
      audit.unknown.emplace_back(
          "units move between the buckets all the time: whether they are the stock in sum");
    compare_rows(audit);
  }

 private:
  void compare_shares(const sale::Look& look, SaleAudit& audit);
  void compare_rows(SaleAudit& audit);

  const BucketedSale& sale_;
  OrderStore& orders_;
  sale::Shares shares_;
};

void check(SaleAudit& audit, std::string name, std::int64_t figure, std::int64_t expected,
           std::string detail) {
  audit.checks.push_back({.name = std::move(name),
                          .ok = figure == expected,
                          .figure = figure,
                          .expected = expected,
                          .detail = std::move(detail)});
}

void WholeAudit::compare_shares(const sale::Look& look, SaleAudit& audit) {
  for (const auto& share : look.shares)
    if (share.failure) throw Error{*share.failure};
  std::int64_t known = 0;
  std::int64_t sold = 0;
  for (const auto& share : look.shares) {
    known += share.is_known() && !share.is_frozen ? 1 : 0;
    sold = sale::sum(sold, share.sold);
  }
  check(audit, "shares_that_are_known", known, sale_.buckets(),
        fmt::format("run 'sluice sale recover {}' where one is not", sale_.definition().name));
  if (look.is_whole())
    check(audit, "shares_and_moves_are_stock", sale::sum(look.capacity(), look.units_under_way()),
          look.stock(),
          fmt::format("{} units in {} buckets, {} between them", look.capacity(), sale_.buckets(),
                      look.units_under_way()));
  check(audit, "units_oversold", std::max<std::int64_t>(sold - look.stock(), 0), 0,
        fmt::format("sold {} of {}", sold, look.stock()));
}

/// What one row has from the others they have given.
void WholeAudit::compare_rows(SaleAudit& audit) {
  std::int64_t moved = 0;
  for (std::int64_t i = 0; i < sale_.buckets(); ++i)
    if (const auto stock = orders_.stock(sale_.bucket(i).definition().name))
      moved = sale::sum(moved, stock->moved);
  check(audit, "rows_of_stock_add_up", moved, 0,
        "what a bucket's row in the database has from the others, they have given");
}

void append(SaleAudit& all, SaleAudit one, std::int64_t index) {
  for (auto& check : one.checks) {
    check.name = fmt::format("{}:{}", index, check.name);
    all.checks.push_back(std::move(check));
  }
  for (auto& difference : one.differences) {
    difference.check = fmt::format("{}:{}", index, difference.check);
    all.differences.push_back(std::move(difference));
  }
  for (auto& words : one.unknown)
    if (std::ranges::find(all.unknown, words) == all.unknown.end())
      all.unknown.push_back(std::move(words));
  all.admitted += one.admitted;
  all.in_database += one.in_database;
  all.on_the_way += one.on_the_way;
  all.dead += one.dead;
}

}  // namespace

SaleAudit audit(Store& store, const BucketedSale& sale, OrderStore& orders, AuditOptions options) {
  SaleAudit all;
  WholeAudit{store, sale, orders}.run(all);
  for (std::int64_t i = 0; i < sale.buckets(); ++i)
    append(all, audit(store, sale.bucket(i), orders, options), i);
  return all;
}

}  // namespace sluice
