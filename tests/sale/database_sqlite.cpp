#include <sqlite3/soci-sqlite3.h>

#include "sale/order_store_suite.hpp"
#include "sale/sql/soci.hpp"
#include "support/temp_dir.hpp"

namespace sluice {

std::vector<DatabaseKind> database_kinds() {
  return {{.name = "sqlite",
           .make =
               [] {
                 static test::TempDir folder;
                 static int files = 0;
                 return "sqlite:" + (folder / ("orders" + std::to_string(++files))).string();
               },
           .run =
               [](const std::string& url, const std::string& statement) {
                 soci::session{soci::sqlite3, "db=" + url.substr(7)} << statement;
               },
           .deadlocks = [](const std::string&) { return 0L; }}};
}

}  // namespace sluice
