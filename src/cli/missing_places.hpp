/// Folders and files that a command would make by opening them.
#pragma once

#include <string>

#include "sluice/order_store.hpp"

namespace sluice::cli {

/// The URL names the folder of an embedded engine, or a file of SQLite, and it is not there.
bool is_missing(const std::string& url);

/// Throws Error{config_mismatch} where the database is missing, and the orders of the sale go into
/// one already, or the command makes none: names both.
void need_database(Store& store, const std::string& sale, const std::string& url, bool makes_it);

}  // namespace sluice::cli
