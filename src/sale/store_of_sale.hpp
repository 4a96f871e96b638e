/// Which store a sale is sold in. Store and database each name the other one: the sale's hash has
/// the identity of its database, and the row of its stock the id of its store.
#pragma once

#include <string>
#include <string_view>

#include "sluice/order_store.hpp"

namespace sluice::sale {

/// The id of a store: a random word that it gets with its first sale. The hash of each sale repeats
/// it, so that a cluster may lose the server of this key.
inline constexpr std::string_view store_key = "sluice:sales:store";

/// Made where there is none.
Task<std::string> id_of_store(Store& store);

/// This store, as the hash of the sale has it, else as it is known by itself; with an empty id: it
/// knows neither, as a store that is new, or was lost.
StoreOfSale store_of_sale(Store& store, const std::string& sale);

/// A folder of the embedded engine may be copied, and the copy has its id. So the id says how often
/// the folder was opened with the sale's database, and ends with a word of this opening: the first
/// use of each renews it in both. A copy that was opened less often is another store then. Throws
/// Error{config_mismatch} where the folder that the database names is seen beside this one.
void renew_id(Store& store, const std::string& sale, OrderStore& orders);
/// Of two ids of one folder the later one; `one`, where they are of two stores.
std::string later_id(const std::string& one, const std::string& other);
/// The store is a folder of the embedded engine.
bool is_folder(Store& store);

/// Whether the database has its orders of this sale from this store, or may have: it has none yet,
/// or is of an older version and the sale was born with it. Reads both.
bool is_sold_here(Store& store, const std::string& sale, OrderStore& orders,
                  const StoreOfSale& here);
/// Throws Error{config_mismatch} where it is not: names both stores, and says what to do.
void need_sold_here(Store& store, const std::string& sale, OrderStore& orders);

/// What a process is told whose store is not the one that the database names.
Error another_store(const std::string& sale, const std::string& database, const StoreOfSale& there,
                    const StoreOfSale& here);
/// Throws Error{config_mismatch} where this database has not seen the last recovery of the sale, as
/// a copy beside the one that has: which of them goes on, a person says. REQUIRES: it has come less
/// far than the store knows.
void refuse_copy(Store& store, const std::string& sale, OrderStore& orders);
/// The line of the log for a database that has lost commits.
std::string rolled_back(const std::string& sale, const std::string& database);

}  // namespace sluice::sale
