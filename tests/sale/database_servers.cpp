#include "sale/database_servers.hpp"

namespace sluice {

test::DatabaseServer& postgresql() {
  static const auto server = test::start_postgresql();
  return *server;
}

test::DatabaseServer& mariadb() {
  static const auto server = test::start_mariadb();
  return *server;
}

std::string database_of(const std::string& url) {
  const auto name = url.substr(url.rfind('/') + 1);
  return name.substr(0, name.find('?'));
}

std::vector<DatabaseKind> database_kinds() {
  const auto kind = [](std::string name, test::DatabaseServer& (*server)()) {
    return DatabaseKind{.name = std::move(name),
                        .make = [server] { return server().url(server().make_database()); },
                        .run =
                            [server](const std::string& url, const std::string& statement) {
                              server().sql(database_of(url), statement);
                            }};
  };
  return {kind("postgresql", postgresql), kind("mariadb", mariadb)};
}

}  // namespace sluice
