#include "sale/sql/order_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "sale/order_store_text.hpp"
#include "sale/sql/sale_transaction.hpp"

namespace sluice::sale {

void SqlOrderStore::add_sale(const std::string& sale, std::int64_t stock) {
  const auto name = to_column(sale);
  const long long units = stock;
  sessions_.in_transaction([&](Connection& at) {
    at.sql << "INSERT INTO sale_stock (name, initial, remaining) VALUES (:n, :i, :r) " +
                  unless_there("name"),
        soci::use(name), soci::use(units), soci::use(units);
    return true;
  });
  const auto there = this->stock(sale);
  if (there && there->initial != stock)
    throw Error{Errc::config_mismatch,
                fmt::format("{}: sale '{}' began with {} units, not with {}; use the same stock, "
                            "another name or another database",
                            dialect().description, sale, there->initial, stock)};
}

std::vector<std::string> SqlOrderStore::sales() {
  return sessions_.guarded([&](Connection& at) {
    std::vector<std::string> names;
    std::string column;
    soci::statement select = (at.sql.prepare << "SELECT name FROM sale_stock", soci::into(column));
    select.execute();
    while (select.fetch()) names.push_back(from_column(column));
    std::ranges::sort(names);
    return names;
  });
}

std::optional<DatabaseStock> SqlOrderStore::stock(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) -> std::optional<DatabaseStock> {
    const auto id = find_sale(at, sale);
    if (!id) return std::nullopt;
    return stock_of(at, *id);
  });
}

DatabaseStock SqlOrderStore::stock_of(Connection& at, long long sale) {
  long long initial = 0;
  long long remaining = 0;
  long long changed = 0;
  long long moved = 0;
  at.sql << "SELECT initial, remaining, changed, moved FROM sale_stock WHERE id = :s",
      soci::use(sale), soci::into(initial), soci::into(remaining), soci::into(changed),
      soci::into(moved);
  return {.initial = initial, .left = remaining, .changed = changed, .moved = moved};
}

/// For questions of which a sale that is not there has no answers: none has this id then.
long long SqlOrderStore::id_or_none(Connection& at, const std::string& sale) {
  return find_sale(at, sale).value_or(-1);
}

std::int64_t SqlOrderStore::epoch_of(Connection& at, long long sale) {
  long long epoch = 0;
  at.sql << "SELECT epoch FROM sale_stock WHERE id = :s", soci::use(sale), soci::into(epoch);
  return epoch;
}

std::int64_t SqlOrderStore::epoch(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) { return epoch_of(at, id_or_none(at, sale)); });
}

/// A database that has come less far than it had comes further than ever.
std::int64_t SqlOrderStore::begin_epoch(const std::string& sale, std::int64_t above,
                                        const StoreOfSale& store, const std::string& token) {
  std::int64_t epoch = 0;
  std::string mark;
  sessions_.in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    at.sql << "UPDATE sale_stock SET commits = commits + 1 WHERE id = :s", soci::use(id);
    epoch = std::max(epoch_of(at, id), above) + 1;
    const long long next = epoch;
    at.sql << "UPDATE sale_stock SET epoch = :e, epoch_token = :t WHERE id = :s", soci::use(next),
        soci::use(token), soci::use(id);
    if (!store.id.empty()) enter_store(at, id, store, next);
    mark = link_of(at, dialect(), id).mark;
    return true;
  });
  if (!store.id.empty()) sessions_.links().tie(sale, store);
  sessions_.links().begin_anew(sale, mark);
  return epoch;
}

std::string SqlOrderStore::epoch_token(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) {
    std::string token;
    const long long id = id_or_none(at, sale);
    at.sql << "SELECT epoch_token FROM sale_stock WHERE id = :s", soci::use(id), soci::into(token);
    return token;
  });
}

/// Unless it is there; where it has moved its new place is.
void SqlOrderStore::enter_store(Connection& at, long long sale, const StoreOfSale& store,
                                long long epoch) const {
  const auto place = to_column(store.place);
  at.sql << fmt::format(
      "UPDATE sale_stock SET store = :i, store_epoch = :e, store_since_us = {} WHERE id = :s AND "
      "store <> :o",
      dialect().now_us),
      soci::use(store.id), soci::use(epoch), soci::use(sale), soci::use(store.id);
  at.sql << "UPDATE sale_stock SET store_place = :p WHERE id = :s", soci::use(place),
      soci::use(sale);
}

std::optional<StoreOfSale> SqlOrderStore::store_of(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) -> std::optional<StoreOfSale> {
    const auto id = find_sale(at, sale);
    if (!id) return std::nullopt;
    return link_of(at, dialect(), *id).store;
  });
}

std::vector<std::string> SqlOrderStore::sold_elsewhere() {
  return sessions_.guarded([&](Connection& at) {
    std::vector<std::string> sales;
    std::string name, store;
    long long epoch = 0;
    long long commits = 0;
    soci::statement select =
        (at.sql.prepare << "SELECT name, store, epoch, commits FROM sale_stock", soci::into(name),
         soci::into(store), soci::into(epoch), soci::into(commits));
    select.execute();
    while (select.fetch()) {
      auto sale = from_column(name);
      const auto known = sessions_.links().find(sale);
      if (known.store.id.empty() || store.empty()) continue;
      if (known.store.id != store || mark_of(epoch, commits) < known.mark)
        sales.push_back(std::move(sale));
    }
    return sales;
  });
}

bool SqlOrderStore::sell_in(const std::string& sale, const StoreOfSale& store,
                            const std::string& mark) {
  auto& links = sessions_.links();
  const bool is_first = links.find(sale).store.id != store.id;
  links.tie(sale, store);
  links.raise(sale, mark);
  const auto known = links.find(sale).mark;  // before the database goes on
  const auto now =
      sessions_.guarded([&](Connection& at) { return link_of(at, dialect(), id_of(at, sale)); });
  if (now.mark < known) return false;
  links.raise(sale, now.mark);
  if (now.store.id != store.id || (is_first && now.store.place != store.place))
    sessions_.in_transaction([&](Connection& at) {
      const auto id = locked_id(at, sale);
      enter_store(at, id, store, epoch_of(at, id));
      return true;
    });
  return true;
}

bool SqlOrderStore::renew_store(const std::string& sale, const std::string& before,
                                const StoreOfSale& store) {
  bool is_named = false;
  sessions_.in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    at.sql << "UPDATE sale_stock SET store = :i WHERE id = :s AND store = :b", soci::use(store.id),
        soci::use(id), soci::use(before);
    is_named = link_of(at, dialect(), id).store.id == store.id;
    return true;
  });
  return is_named;
}

std::string SqlOrderStore::identity() {
  const std::lock_guard lock{identity_mutex_};
  if (!identity_.empty()) return identity_;
  std::string found;
  const auto find = [&](Connection& at) {
    at.sql << "SELECT identity FROM sale_database WHERE id = 1", soci::into(found);
    return at.sql.got_data();
  };
  if (!sessions_.guarded(find)) {
    const auto word = random_hex_128();
    sessions_.in_transaction([&](Connection& at) {
      at.sql << "INSERT INTO sale_database (id, identity) VALUES (1, :w) " + unless_there("id"),
          soci::use(word);
      return find(at);
    });
  }
  return identity_ = found;
}

/// Into a row beside the one of the identity: with another word each time, since MariaDB writes no
/// row that stays as it is.
void SqlOrderStore::check_writable() {
  const auto word = random_hex_128();
  sessions_.in_transaction([&](Connection& at) {
    soci::statement update =
        (at.sql.prepare << "UPDATE sale_database SET identity = :w WHERE id = 2", soci::use(word));
    update.execute(true);
    if (update.get_affected_rows() == 0)
      at.sql << "INSERT INTO sale_database (id, identity) VALUES (2, :w) " + unless_there("id"),
          soci::use(word);
    return true;
  });
}

WallTime SqlOrderStore::wall() {
  return sessions_.guarded([&](Connection& at) {
    long long micros = 0;
    at.sql << fmt::format("SELECT {}", dialect().now_us), soci::into(micros);
    return WallTime{std::chrono::microseconds{micros}};
  });
}

std::string SqlOrderStore::unless_there(std::string_view column) const {
  return fmt::format(fmt::runtime(dialect().unless_there), column);
}

}  // namespace sluice::sale
