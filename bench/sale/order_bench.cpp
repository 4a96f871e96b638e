/// Orders into the databases, on disk when they are counted: batches of 500 as a worker brings them
/// in, and on the same PostgreSQL the ways that articles on flash sales show, one transaction a
/// click, by pgbench.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "base/cpu_time.hpp"
#include "sluice/order_store.hpp"
#include "support/database_rig.hpp"
#include "support/report.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr std::int64_t batch_size = 500;
constexpr int clients = 8;

std::vector<SaleOrder> batch_from(std::int64_t first) {
  std::vector<SaleOrder> orders;
  for (auto id = first; id < first + batch_size; ++id)
    orders.push_back({.number = fmt::format("MT{:012}", id),
                      .id = id,
                      .units = 1,
                      .buyer = {fmt::format("{:013}", id * 7919 % 1'000'003)},
                      .n = id,
                      .issued_at = WallTime{std::chrono::microseconds{id}},
                      .request = {fmt::format("{:036}", id)}});
  return orders;
}

/// Orders a second into this database.
class Recorder {
 public:
  explicit Recorder(const std::string& url) : orders_(open_order_store(url)) {
    orders_->add_sale("s", 1'000'000'000);
  }
  double measure(std::chrono::milliseconds each) {
    return rate(each, [&] {
      const auto batch = batch_from(next_);
      next_ += batch_size;
      const auto before = thread_cpu_time();
      const auto inserted = orders_->insert("s", batch).inserted;
      busy_ += thread_cpu_time() - before;
      return inserted;
    });
  }
  /// Of our processor, so far; of SQLite that is all there is.
  double micros_an_order() const {
    return std::chrono::duration<double, std::micro>(busy_).count() /
           static_cast<double>(next_ - 1);
  }

 private:
  std::chrono::nanoseconds busy_{};
  std::unique_ptr<OrderStore> orders_;
  std::int64_t next_ = 1;
};

// One person, one voucher: looked for, taken, noted, in one transaction (the "stock > 0" way).
constexpr std::string_view row_update = R"(
\set buyer random(1, 1000000000)
BEGIN;
SELECT COUNT(*) FROM voucher_order WHERE voucher_id = 1 AND user_id = :buyer;
UPDATE voucher SET stock = stock - 1 WHERE voucher_id = 1 AND stock > 0;
INSERT INTO voucher_order (voucher_id, user_id) VALUES (1, :buyer);
COMMIT;
)";

// The same with a version that was read before: who comes second has bought nothing.
constexpr std::string_view optimistic = R"(
\set buyer random(1, 1000000000)
SELECT stock, version FROM voucher WHERE voucher_id = 1 \gset
BEGIN;
WITH won AS (UPDATE voucher SET stock = stock - 1, version = version + 1
             WHERE voucher_id = 1 AND stock > 0 AND version = :version RETURNING 1)
INSERT INTO voucher_order (voucher_id, user_id) SELECT 1, :buyer FROM won;
COMMIT;
)";

/// Vouchers sold a second.
double sell_by_clicks(const test::DatabaseServer& server, const std::string& database,
                      std::string_view script, std::chrono::milliseconds each) {
  const test::TempDir folder;
  std::ofstream{folder / "script"} << script;
  server.sql(database,
             "DROP TABLE IF EXISTS voucher, voucher_order;"
             "CREATE TABLE voucher (voucher_id BIGINT PRIMARY KEY, stock BIGINT, version BIGINT);"
             "CREATE TABLE voucher_order (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
             " voucher_id BIGINT, user_id BIGINT);"
             "CREATE INDEX ON voucher_order (user_id, voucher_id);"
             "INSERT INTO voucher VALUES (1, 1000000000, 0)");
  const auto seconds = std::max<std::int64_t>(1, each.count() / 1000);
  const auto line = fmt::format(
      "$(pg_config --bindir)/pgbench -h 127.0.0.1 -p {} -U sluice -n -c {} -T {} -f {} {} >{} 2>&1",
      server.port(), clients, seconds, (folder / "script").string(), database,
      (folder / "out").string());
  if (std::system(line.c_str()) != 0) throw std::runtime_error{"pgbench: " + line};
  return std::stod(server.sql(database, "SELECT COUNT(*) FROM voucher_order")) /
         static_cast<double>(seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const auto postgresql = test::start_postgresql({"max_wal_size=2GB"});
  const auto mariadb = test::start_mariadb();
  const test::TempDir folder;
  const auto clicks = postgresql->make_database();
  Recorder into_postgresql{postgresql->url(postgresql->make_database())};
  Recorder into_mariadb{mariadb->url(mariadb->make_database())};
  Recorder into_sqlite{"sqlite:" + (folder / "orders.db").string()};

  Row sqlite{.figure = "orders into SQLite, batches of 500", .unit = "1/s"};
  Row maria{.figure = "orders into MariaDB, batches of 500", .unit = "1/s", .goal = 40'000};
  Row postgres{.figure = "orders into PostgreSQL, batches of 500", .unit = "1/s", .goal = 15'000};
  Row against_update{
      .figure = "the same",
      .unit = "1/s",
      .peer = "UPDATE ... stock > 0, a transaction a click, 8 clients, the same PostgreSQL",
      .goal = 10};
  Row against_version{.figure = "the same",
                      .unit = "1/s",
                      .peer = "UPDATE ... version = what was read, 8 clients, the same PostgreSQL",
                      .goal = 10};
  for (int round = 0; round < options.rounds; ++round) {
    sqlite.values.push_back(into_sqlite.measure(options.each));
    maria.values.push_back(into_mariadb.measure(options.each));
    postgres.values.push_back(into_postgresql.measure(options.each));
    against_update.values.push_back(postgres.values.back());
    against_update.peer_values.push_back(
        sell_by_clicks(*postgresql, clicks, row_update, options.each));
    against_version.values.push_back(postgres.values.back());
    against_version.peer_values.push_back(
        sell_by_clicks(*postgresql, clicks, optimistic, options.each));
  }
  Report report{"orders", options};
  for (auto* const row : {&sqlite, &maria, &postgres, &against_update, &against_version})
    report.add(std::move(*row));
  const auto add_cost = [&](std::string figure, const Recorder& recorder) {
    report.add({.figure = "our processor's time an order, " + std::move(figure),
                .unit = "us",
                .values = {recorder.micros_an_order()}});
  };
  add_cost("SQLite", into_sqlite);
  add_cost("MariaDB", into_mariadb);
  add_cost("PostgreSQL", into_postgresql);
  report.print();
}
