#include "sale/sql/migrations.hpp"

namespace sluice::sale {

// BIGINT, not INTEGER: SOCI goes by the declared type, and reads an INTEGER of SQLite as 32 bits.
std::span<const Migration> migrations() {
  static const std::vector<Migration> all{
      {.version = 1,
       .tables =
           {"CREATE TABLE IF NOT EXISTS sale_stock (id {id}, name {key} NOT NULL UNIQUE,"
            " initial BIGINT NOT NULL, remaining BIGINT NOT NULL CHECK (remaining >= 0)){table}",
            "CREATE TABLE IF NOT EXISTS sale_orders (sale BIGINT NOT NULL, id BIGINT NOT NULL,"
            " number {key} NOT NULL, buyer {key} NOT NULL, n BIGINT NOT NULL,"
            " units BIGINT NOT NULL CHECK (units > 0), issued_us BIGINT NOT NULL,"
            " request {key} NOT NULL, PRIMARY KEY (sale, id), UNIQUE (sale, number),"
            " UNIQUE (sale, buyer, n), FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}",
            "CREATE TABLE IF NOT EXISTS sale_returns (sale BIGINT NOT NULL,"
            " order_id BIGINT NOT NULL, seq BIGINT NOT NULL,"
            " units BIGINT NOT NULL CHECK (units > 0), done BIGINT NOT NULL,"
            " PRIMARY KEY (sale, order_id, seq),"
            " FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}",
            "CREATE TABLE IF NOT EXISTS sale_changes (sale BIGINT NOT NULL, seq BIGINT NOT NULL,"
            " delta BIGINT NOT NULL, state {word} NOT NULL, PRIMARY KEY (sale, seq),"
            " FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}",
            "CREATE TABLE IF NOT EXISTS sale_definitions (sale BIGINT NOT NULL,"
            " field {key} NOT NULL, value {text} NOT NULL, PRIMARY KEY (sale, field),"
            " FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}",
            "CREATE TABLE IF NOT EXISTS sale_database (id BIGINT NOT NULL PRIMARY KEY,"
            " identity {word} NOT NULL){rowless}"},
       // Of files that were made before versions had numbers, some have these tables without them.
       .columns = {{"sale_stock", "epoch", "BIGINT NOT NULL DEFAULT 0"},
                   {"sale_stock", "changed", "BIGINT NOT NULL DEFAULT 0"},
                   {"sale_orders", "state", "{word} NOT NULL DEFAULT 'awaiting'"},
                   {"sale_orders", "reason", "{text} NOT NULL DEFAULT {nothing}"},
                   {"sale_orders", "version", "BIGINT NOT NULL DEFAULT 0"}},
       .indexes = {{.name = "sale_returns_pending",
                    .table = "sale_returns",
                    .columns = "sale, order_id",
                    .condition = "done = 0"},
                   {.name = "sale_orders_requests",
                    .table = "sale_orders",
                    .columns = "sale, buyer, request",
                    .is_unique = true}}}};
  return all;
}

}  // namespace sluice::sale
