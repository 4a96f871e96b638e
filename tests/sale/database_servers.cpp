#include "sale/database_servers.hpp"

namespace sluice {

std::unique_ptr<test::DatabaseServer> start_quick_postgresql() {
  return test::start_postgresql({"fsync=off"});
}

std::unique_ptr<test::DatabaseServer> start_quick_mariadb() {
  return test::start_mariadb({"--innodb-flush-log-at-trx-commit=2"});
}

test::DatabaseServer& postgresql() {
  static const auto server = start_quick_postgresql();
  return *server;
}

test::DatabaseServer& mariadb() {
  static const auto server = start_quick_mariadb();
  return *server;
}

std::string database_of(const std::string& url) {
  const auto name = url.substr(url.rfind('/') + 1);
  return name.substr(0, name.find('?'));
}

std::vector<DatabaseKind> database_kinds() {
  const auto kind = [](std::string name, test::DatabaseServer& (*server)(), std::string deadlocks) {
    return DatabaseKind{.name = std::move(name),
                        .make = [server] { return server().url(server().make_database()); },
                        .run =
                            [server](const std::string& url, const std::string& statement) {
                              server().sql(database_of(url), statement);
                            },
                        .deadlocks =
                            [server, deadlocks](const std::string& url) {
                              return std::stol(server().sql(database_of(url), deadlocks));
                            }};
  };
  return {kind("postgresql", postgresql,
               "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"),
          kind("mariadb", mariadb,
               "SELECT variable_value FROM information_schema.global_status WHERE variable_name = "
               "'Innodb_deadlocks'")};
}

}  // namespace sluice
