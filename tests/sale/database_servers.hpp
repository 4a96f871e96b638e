/// The servers of this program, started when the first test asks for one.
#pragma once

#include <string>

#include "sale/order_store_suite.hpp"
#include "support/database_rig.hpp"

namespace sluice {

test::DatabaseServer& postgresql();
test::DatabaseServer& mariadb();

/// The name of the database in a URL.
std::string database_of(const std::string& url);

}  // namespace sluice
