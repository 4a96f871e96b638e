/// The stock rows of the buckets of a sale. Each begins with what its bucket has in the beginning;
/// a row that has too few units for an order takes some from the others. In sum the rows never have
/// fewer than the stores may sell, so that there are always enough; and that sum never goes below
/// zero. Which row has them says nothing of which bucket of the store has: units move there without
/// the database.
#pragma once

#include <string>

#include "sale/sql/sale_transaction.hpp"

namespace sluice::sale {

/// locked_sale(), and of a bucket the rows of its siblings too, in one order for all writers.
long long locked_with_siblings(Connection& at, const SqlDialect& dialect, const std::string& sale);

/// What a sale is called outside: of a bucket the name of the whole sale.
std::string name_of_whole(Connection& at, const SqlDialect& dialect, const std::string& sale);
/// The row with which messages of the sale itself stand: of all buckets that of the first one.
long long row_of_whole(Connection& at, const SqlDialect& dialect, const std::string& sale);
/// Units that all buckets of the sale have left, or it where it is none. REQUIRES: its row is
/// locked.
long long left_in_whole(Connection& at, const SqlDialect& dialect, const std::string& sale);

/// Brings units into the row of a bucket, until it has so many, or the others have none left. Does
/// nothing with a sale that is none. Throws Error{database} where a sibling is not entered yet.
void gather_units(Connection& at, const SqlDialect& dialect, const std::string& sale,
                  std::int64_t units);

}  // namespace sluice::sale
