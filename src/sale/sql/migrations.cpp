#include "sale/sql/migrations.hpp"

namespace sluice::sale {

namespace {

// BIGINT, not INTEGER: SOCI goes by the declared type, and reads an INTEGER of SQLite as 32 bits.
Migration orders() {
  return {
      .version = 1,
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
                   .is_unique = true}}};
}

/// What orders are paid with. A payment has no foreign key: it may come before its order.
Migration payments() {
  return {.version = 2,
          .tables = {"CREATE TABLE IF NOT EXISTS sale_payments (provider {word} NOT NULL,"
                     " event {key} NOT NULL, sale_name {key} NOT NULL, number {key} NOT NULL,"
                     " amount BIGINT NOT NULL, currency {word} NOT NULL, state {word} NOT NULL,"
                     " order_id BIGINT NOT NULL, note {text} NOT NULL, received_us BIGINT NOT NULL,"
                     " PRIMARY KEY (provider, event)){rowless}",
                     "CREATE TABLE IF NOT EXISTS sale_refunds (sale BIGINT NOT NULL,"
                     " order_id BIGINT NOT NULL, seq BIGINT NOT NULL,"
                     " amount BIGINT NOT NULL CHECK (amount > 0), currency {word} NOT NULL,"
                     " provider {word} NOT NULL, event {key} NOT NULL, state {word} NOT NULL,"
                     " attempts BIGINT NOT NULL, due_us BIGINT NOT NULL, note {text} NOT NULL,"
                     " PRIMARY KEY (sale, order_id, seq),"
                     " FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}",
                     "CREATE TABLE IF NOT EXISTS sale_messages (sale BIGINT NOT NULL,"
                     " order_id BIGINT NOT NULL, seq BIGINT NOT NULL, type {word} NOT NULL,"
                     " data {text} NOT NULL, at_us BIGINT NOT NULL, due_us BIGINT NOT NULL,"
                     " attempts BIGINT NOT NULL, state {word} NOT NULL,"
                     " PRIMARY KEY (sale, order_id, seq),"
                     " FOREIGN KEY (sale) REFERENCES sale_stock (id)){rowless}"},
          .columns = {{"sale_orders", "returned", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_orders", "pay_by", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_returns", "ends", "BIGINT NOT NULL DEFAULT 1"},
                      {"sale_returns", "retake", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_returns", "cause", "{key} NOT NULL DEFAULT ''"},
                      {"sale_stock", "messages_off", "BIGINT NOT NULL DEFAULT 0"}},
          .indexes = {{.name = "sale_orders_deadlines",
                       .table = "sale_orders",
                       .columns = "sale, pay_by",
                       .condition = "state = 'awaiting' AND pay_by > 0"},
                      {.name = "sale_payments_of_sale",
                       .table = "sale_payments",
                       .columns = "sale_name, state, received_us"},
                      {.name = "sale_payments_of_order",
                       .table = "sale_payments",
                       .columns = "order_id, state"},
                      {.name = "sale_refunds_due",
                       .table = "sale_refunds",
                       .columns = "sale, due_us",
                       .condition = "state = 'asked'"},
                      {.name = "sale_messages_due",
                       .table = "sale_messages",
                       .columns = "sale, due_us",
                       .condition = "state = 'due'"}}};
}

/// Buckets of a sale: what the rows of their stocks have from each other.
Migration buckets() {
  return {.version = 3,
          .tables = {},
          .columns = {{"sale_stock", "moved", "BIGINT NOT NULL DEFAULT 0"}},
          .indexes = {}};
}

/// In which store each sale is sold, and how often its row was changed.
Migration stores() {
  return {.version = 4,
          .tables = {},
          .columns = {{"sale_stock", "store", "{word} NOT NULL DEFAULT ''"},
                      {"sale_stock", "store_place", "{text} NOT NULL DEFAULT {nothing}"},
                      {"sale_stock", "store_epoch", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_stock", "store_since_us", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_stock", "epoch_token", "{word} NOT NULL DEFAULT ''"},
                      {"sale_stock", "commits", "BIGINT NOT NULL DEFAULT 0"}},
          .indexes = {}};
}

/// What a person has to look at: why something was not sent, and money that he sends back.
Migration troubles() {
  return {.version = 5,
          .tables = {},
          .columns = {{"sale_messages", "note", "{text} NOT NULL DEFAULT {nothing}"},
                      {"sale_payments", "attempts", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_payments", "due_us", "BIGINT NOT NULL DEFAULT 0"},
                      {"sale_payments", "failure", "{text} NOT NULL DEFAULT {nothing}"}},
          .indexes = {{.name = "sale_payments_by_state",
                       .table = "sale_payments",
                       .columns = "state, due_us"}}};
}

/// What refunds and messages are named by: a backup begins the versions of orders anew.
Migration names() {
  return {.version = 6,
          .tables = {},
          .columns = {{"sale_refunds", "part", "{key} NOT NULL DEFAULT ''"},
                      {"sale_messages", "mark", "{word} NOT NULL DEFAULT ''"}},
          .indexes = {}};
}

}  // namespace

std::span<const Migration> migrations() {
  static const std::vector<Migration> all{orders(), payments(), buckets(),
                                          stores(), troubles(), names()};
  return all;
}

}  // namespace sluice::sale
