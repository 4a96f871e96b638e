/// The servers of this program, started when the first test asks for one.
#pragma once

#include <memory>
#include <string>

#include "sale/order_store_suite.hpp"
#include "support/database_rig.hpp"

namespace sluice {

/// They do not wait for the disk: what a server has written survives its own death, and these tests
/// take the power off nobody.
std::unique_ptr<test::DatabaseServer> start_quick_postgresql();
std::unique_ptr<test::DatabaseServer> start_quick_mariadb();

test::DatabaseServer& postgresql();
test::DatabaseServer& mariadb();

/// The name of the database in a URL.
std::string database_of(const std::string& url);

}  // namespace sluice
