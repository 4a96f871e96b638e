#include "sale/order_store_sql.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>
#include <unordered_map>

#include "base/random.hpp"
#include "sale/differences.hpp"
#include "sale/sums.hpp"
#include "sluice/clock.hpp"

namespace sluice::sale {
namespace {

constexpr std::string_view order_columns = "id, number, buyer, n, units, issued_us, request";
constexpr std::string_view stands = "state = 'awaiting'";
// What somebody wrote there may be beyond any sum.
constexpr std::string_view countable_units =
    "(CASE WHEN units BETWEEN 1 AND 1000000000000 THEN units ELSE 0 END)";
constexpr std::string_view countable_delta =
    "(CASE WHEN delta BETWEEN -1000000000000 AND 1000000000000 THEN delta ELSE 0 END)";

OrderState state_of(const std::string& text) {
  for (const auto state : {OrderState::awaiting, OrderState::cancelled})
    if (text == to_string(state)) return state;
  throw Error{Errc::corrupt, "the database has an order in the state '" + text +
                                 "', which this version of Sluice does not know"};
}

/// A text that Sluice did not write is what it says: it is nobody's id, and an audit names it.
std::string bytes_of(const std::string& column) {
  try {
    return from_column(column);
  } catch (const Error&) {
    return column;
  }
}

/// Orders as the columns that SOCI binds whole.
struct Columns {
  std::vector<long long> sale, id, n, units, issued_us;
  std::vector<std::string> number, buyer, request, state;

  void resize(std::size_t size) {
    for (auto* const column : {&sale, &id, &n, &units, &issued_us}) column->resize(size);
    for (auto* const column : {&number, &buyer, &request, &state}) column->resize(size);
  }

  void set(std::size_t at, const SaleOrder& order) {
    id[at] = order.id;
    number[at] = order.number;
    buyer[at] = to_column(order.buyer.value);
    n[at] = order.n;
    units[at] = order.units;
    issued_us[at] = order.issued_at.time_since_epoch().count();
    request[at] = to_column(order.request.value);
  }

  SaleOrder order(std::size_t at) const {
    return {.number = number[at],
            .id = id[at],
            .units = units[at],
            .buyer = {bytes_of(buyer[at])},
            .n = n[at],
            .issued_at = WallTime{std::chrono::microseconds{issued_us[at]}},
            .request = {bytes_of(request[at])},
            .state = state_of(state[at])};
  }
};

/// An open session with what is prepared in it. After a failure it is thrown away whole: that ends
/// its transaction and leaves no statement half done.
struct Connection {
  void open(const SqlDialect& dialect) {
    dialect.connect(sql);
    for (const auto statement : dialect.on_connect) sql << std::string{statement};
  }

  soci::session sql;
  std::optional<soci::statement> insert;  // of `rows`, all at once
  std::optional<soci::statement> take;
  Columns rows;
  long long take_units = 0;
  long long take_sale = 0;
  long long take_epoch = 0;
  std::map<std::string, long long, std::less<>> sale_ids;
};

class SqlOrderStore final : public OrderStore {
 public:
  explicit SqlOrderStore(SqlDialect dialect);

  void add_sale(const std::string& sale, std::int64_t stock) override;
  InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                      std::int64_t epoch) override;
  std::int64_t begin_epoch(const std::string& sale, std::int64_t above) override;
  std::int64_t epoch(const std::string& sale) override;
  std::vector<SaleOrder> page(const std::string& sale, std::int64_t after,
                              std::size_t most) override;
  std::vector<SaleOrder> find(const std::string& sale, std::span<const std::int64_t> ids) override;
  std::vector<bool> are_taken(const std::string& sale, std::span<const SaleOrder> orders) override;
  std::vector<BuyerTotals> totals(const std::string& sale,
                                  std::span<const BuyerId> buyers) override;
  DatabaseTotals totals(const std::string& sale) override;
  std::optional<DatabaseStock> stock(const std::string& sale) override;
  void keep_definition(const std::string& sale, const Fields& fields) override;
  void change_definition(const std::string& sale, const std::string& field,
                         const std::string& value) override;
  Fields definition(const std::string& sale) override;
  std::int64_t buyers_above(const std::string& sale, std::int64_t limit) override;
  std::optional<SaleOrder> find_number(const std::string& sale, const std::string& number) override;
  std::optional<SaleOrder> find_request(const std::string& sale, const BuyerId& buyer,
                                        const RequestId& request) override;
  EndedOrder end_order(const std::string& sale, std::int64_t id, OrderState state,
                       const std::string& reason) override;
  InsertResult insert_ended(const std::string& sale, const SaleOrder& order, OrderState state,
                            const std::string& reason, std::int64_t epoch) override;
  std::vector<std::string> reasons(const std::string& sale,
                                   std::span<const std::int64_t> ids) override;
  std::vector<OrderReturn> returns(const std::string& sale, std::int64_t after, std::size_t most,
                                   bool only_pending) override;
  void return_done(const std::string& sale, std::int64_t id, std::int64_t seq) override;
  std::optional<StockChange> begin_stock_change(const std::string& sale,
                                                std::int64_t stock) override;
  std::optional<StockChange> pending_stock_change(const std::string& sale) override;
  void end_stock_change(const std::string& sale, std::int64_t seq, bool applied) override;
  std::int64_t last_stock_change(const std::string& sale) override;
  void note_stock_change(const std::string& sale, std::int64_t seq, std::int64_t stock) override;
  std::string identity() override;
  std::string describe() const override { return dialect_.description; }

 private:
  /// Runs `work` on a connection; whatever it throws ends the connection, the next call makes
  /// another.
  template <class Do>
  auto guarded(Do&& work) {
    committing_ = false;
    errno = 0;  // for classify()
    try {
      return work(connection());
    } catch (const soci::soci_error& failure) {
      const auto error = error_of(failure);
      connection_.reset();
      throw error;
    } catch (...) {
      connection_.reset();
      throw;
    }
  }

  /// Runs `work` in a transaction; commits when it returns true, else rolls back.
  template <class Do>
  bool in_transaction(Do&& work) {
    return begun(dialect_.begin, std::forward<Do>(work));
  }
  /// The same for one that only reads.
  template <class Do>
  void in_snapshot(Do&& read) {
    begun(dialect_.begin_reading, [&](Connection& at) {
      read(at);
      return false;
    });
  }
  template <class Do>
  bool begun(std::string_view begin, Do&& work) {
    return guarded([&](Connection& at) {
      if (dialect_.check_presence) dialect_.check_presence();
      at.sql << std::string{begin};
      if (!work(at)) {
        at.sql.rollback();
        return false;
      }
      committing_ = true;
      at.sql.commit();
      if (dialect_.check_presence) dialect_.check_presence();
      return true;
    });
  }

  Connection& connection();
  void make_schema();
  void add_column(const SqlColumn& column);
  void add_request_index();
  Error error_of(const soci::soci_error& failure) const;

  long long id_of(Connection& at, const std::string& sale) const;
  static long long id_or_none(Connection& at, const std::string& sale);
  static std::optional<long long> find_id(Connection& at, const std::string& sale);
  void prepare(Connection& at) const;
  bool insert_together(Connection& at, long long sale, std::span<const SaleOrder> orders,
                       std::int64_t epoch) const;
  InsertResult insert_one_by_one(Connection& at, long long sale, std::span<const SaleOrder> orders,
                                 std::int64_t epoch) const;
  std::string insert_one(Connection& at, long long sale, const SaleOrder& order, std::int64_t epoch,
                         InsertResult& result) const;
  std::string insert_row(Connection& at, long long sale, const SaleOrder& order,
                         InsertResult& result) const;
  static bool end_row(Connection& at, long long sale, std::int64_t id, OrderState state,
                      const std::string& reason);
  static void note_return(Connection& at, long long sale, std::int64_t id, std::int64_t units);
  soci::statement insert_of(soci::session& sql, const Columns& rows) const;
  bool take_units(Connection& at, long long sale, std::int64_t units, std::int64_t epoch) const;
  static std::int64_t epoch_of(Connection& at, long long sale);
  static DatabaseStock stock_of(Connection& at, long long sale);
  static std::optional<SaleOrder> find(Connection& at, long long sale, std::int64_t id);
  static std::string reason_of(Connection& at, long long sale, std::int64_t id);
  static std::optional<StockChange> pending(Connection& at, long long sale);
  static long long last_change(Connection& at, long long sale);
  static void change_stock(Connection& at, long long sale, long long delta);
  static void end_change(Connection& at, long long sale, const StockChange& change, bool applied);

  const SqlDialect dialect_;
  std::string identity_;
  std::unique_ptr<Connection> connection_;
  bool was_open_ = false;
  bool committing_ = false;
};

SqlOrderStore::SqlOrderStore(SqlDialect dialect) : dialect_(std::move(dialect)) {
  // Of processes that create a database at the same moment, SQLite lets one do it and fails the
  // others at once: they try again for a while.
  const auto give_up = system_clock().steady() + std::chrono::seconds{2};
  for (;;) {
    try {
      make_schema();
      return;
    } catch (const soci::soci_error& failure) {
      const auto error = error_of(failure);
      const bool is_busy = dialect_.classify(failure, connection_->sql).busy;
      connection_.reset();
      was_open_ = false;
      if (!is_busy || system_clock().steady() >= give_up) throw error;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

void SqlOrderStore::make_schema() {
  for (const auto statement : dialect_.schema) connection().sql << std::string{statement};
  for (const auto& column : dialect_.columns) add_column(column);
  add_request_index();
}

/// Unless the table has it; another process may add it at the same moment.
void SqlOrderStore::add_column(const SqlColumn& column) {
  const auto is_there = [&] {
    try {
      connection().sql << fmt::format("SELECT {} FROM {} LIMIT 0", column.name, column.table);
      return true;
    } catch (const soci::soci_error&) {
      return false;
    }
  };
  if (is_there()) return;
  try {
    connection().sql << fmt::format("ALTER TABLE {} ADD COLUMN {} {}", column.table, column.name,
                                    column.type);
  } catch (const soci::soci_error&) {
    if (!is_there()) throw;
  }
}

/// A file of an older version may have two orders of a request: sales that lost their store sold
/// them both.
void SqlOrderStore::add_request_index() {
  try {
    connection().sql << std::string{dialect_.request_index};
  } catch (const soci::soci_error& failure) {
    if (!dialect_.classify(failure, connection().sql).refused) throw;
    long long requests = 0;
    long long id = 0;
    std::string sale, buyer, request, first, last;
    connection().sql
        << "SELECT COUNT(*) OVER (), sale, name, buyer, request, MIN(number), MAX(number) FROM "
           "sale_orders, sale_stock WHERE sale_stock.id = sale GROUP BY sale, name, buyer, request "
           "HAVING COUNT(*) > 1 ORDER BY sale, buyer, request LIMIT 1",
        soci::into(requests), soci::into(id), soci::into(sale), soci::into(buyer),
        soci::into(request), soci::into(first), soci::into(last);
    throw Error{Errc::corrupt,
                fmt::format("{0}: {1} request(s) have more than one order: in sale '{3}' request "
                            "'{4}' of buyer '{5}' has {6} and {7}. Decide which of them stands, "
                            "and give the other one another request: UPDATE sale_orders SET "
                            "request = request || ':2' WHERE sale = {2} AND number = '{7}'",
                            dialect_.description, requests, id, shown(sale), shown(request),
                            shown(buyer), shown(first), shown(last))};
  }
}

Connection& SqlOrderStore::connection() {
  if (!connection_) {
    if (was_open_ && dialect_.check_before_reconnect) dialect_.check_before_reconnect();
    connection_ = std::make_unique<Connection>();
    connection_->open(dialect_);
    was_open_ = true;
  }
  return *connection_;
}

Error SqlOrderStore::error_of(const soci::soci_error& failure) const {
  const auto why = dialect_.classify(failure, connection_->sql);
  return {why.code,
          fmt::format("{}: {}{}{}", dialect_.description, failure.get_error_message(),
                      why.cause.empty() ? "" : ": ", why.cause),
          committing_ ? Effect::unknown : Effect::none};
}

void SqlOrderStore::add_sale(const std::string& sale, std::int64_t stock) {
  const auto name = to_column(sale);
  const long long units = stock;
  in_transaction([&](Connection& at) {
    at.sql << fmt::format(
        "{} sale_stock (name, initial, remaining) VALUES (:name, :initial, :remaining) {}",
        dialect_.insert_prefix, dialect_.insert_suffix),
        soci::use(name), soci::use(units), soci::use(units);
    return true;
  });
  const auto there = this->stock(sale);
  if (there && there->initial != stock)
    throw Error{Errc::config_mismatch,
                fmt::format("{}: sale '{}' began with {} units, not with {}; use the same stock, "
                            "another name or another database",
                            dialect_.description, sale, there->initial, stock)};
}

std::optional<DatabaseStock> SqlOrderStore::stock(const std::string& sale) {
  return guarded([&](Connection& at) -> std::optional<DatabaseStock> {
    const auto id = find_id(at, sale);
    if (!id) return std::nullopt;
    return stock_of(at, *id);
  });
}

DatabaseStock SqlOrderStore::stock_of(Connection& at, long long sale) {
  long long initial = 0;
  long long remaining = 0;
  long long changed = 0;
  at.sql << "SELECT initial, remaining, changed FROM sale_stock WHERE id = :s", soci::use(sale),
      soci::into(initial), soci::into(remaining), soci::into(changed);
  return {.initial = initial, .left = remaining, .changed = changed};
}

long long SqlOrderStore::id_of(Connection& at, const std::string& sale) const {
  if (const auto id = find_id(at, sale)) return *id;
  throw Error{Errc::database,
              fmt::format("{}: sale '{}' is not in the database yet; its worker enters it",
                          dialect_.description, sale)};
}

/// For questions of which a sale that is not there has no answers: none has this id then.
long long SqlOrderStore::id_or_none(Connection& at, const std::string& sale) {
  return find_id(at, sale).value_or(-1);
}

std::optional<long long> SqlOrderStore::find_id(Connection& at, const std::string& sale) {
  if (const auto known = at.sale_ids.find(sale); known != at.sale_ids.end()) return known->second;
  long long id = 0;
  const auto name = to_column(sale);
  at.sql << "SELECT id FROM sale_stock WHERE name = :name", soci::use(name), soci::into(id);
  if (!at.sql.got_data()) return std::nullopt;
  at.sale_ids.emplace(sale, id);
  return id;
}

soci::statement SqlOrderStore::insert_of(soci::session& sql, const Columns& rows) const {
  return (sql.prepare << fmt::format(
              "{} sale_orders (sale, {}) VALUES (:s, :i, :o, :b, :n, :u, :t, :r) {}",
              dialect_.insert_prefix, order_columns, dialect_.insert_suffix),
          soci::use(rows.sale), soci::use(rows.id), soci::use(rows.number), soci::use(rows.buyer),
          soci::use(rows.n), soci::use(rows.units), soci::use(rows.issued_us),
          soci::use(rows.request));
}

void SqlOrderStore::prepare(Connection& at) const {
  if (at.insert) return;
  at.insert.emplace(insert_of(at.sql, at.rows));
  at.take.emplace(
      (at.sql.prepare
           << "UPDATE sale_stock SET remaining = remaining - :u WHERE id = :s AND remaining >= :v "
              "AND epoch = :e",
       soci::use(at.take_units), soci::use(at.take_sale), soci::use(at.take_units),
       soci::use(at.take_epoch)));
}

InsertResult SqlOrderStore::insert(const std::string& sale, std::span<const SaleOrder> orders,
                                   std::int64_t epoch) {
  if (orders.empty()) return {};
  if (in_transaction(
          [&](Connection& at) { return insert_together(at, id_of(at, sale), orders, epoch); }))
    return {.inserted = orders.size(), .repeated = 0, .rejected = {}};
  // Repeats after a crash, or an order that does not fit: seldom, so it may cost more.
  InsertResult result;
  in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    result = {.stale = epoch_of(at, id) != epoch};
    if (result.stale) return false;
    result = insert_one_by_one(at, id, orders, epoch);
    return true;
  });
  return result;
}

std::int64_t SqlOrderStore::epoch_of(Connection& at, long long sale) {
  long long epoch = 0;
  at.sql << "SELECT epoch FROM sale_stock WHERE id = :s", soci::use(sale), soci::into(epoch);
  return epoch;
}

std::int64_t SqlOrderStore::epoch(const std::string& sale) {
  return guarded([&](Connection& at) { return epoch_of(at, id_or_none(at, sale)); });
}

std::int64_t SqlOrderStore::begin_epoch(const std::string& sale, std::int64_t above) {
  std::int64_t epoch = 0;
  in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    epoch = std::max(epoch_of(at, id), above) + 1;
    const long long next = epoch;
    at.sql << "UPDATE sale_stock SET epoch = :e WHERE id = :s", soci::use(next), soci::use(id);
    return true;
  });
  return epoch;
}

/// True when every order was new and the stock was enough for all.
bool SqlOrderStore::insert_together(Connection& at, long long sale,
                                    std::span<const SaleOrder> orders, std::int64_t epoch) const {
  at.rows.resize(orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    at.rows.sale[i] = sale;
    at.rows.set(i, orders[i]);
  }
  prepare(at);
  try {
    at.insert->execute(true);
  } catch (const soci::soci_error& failure) {
    if (dialect_.classify(failure, at.sql).refused) return false;
    throw;
  }
  if (at.insert->get_affected_rows() != static_cast<long long>(orders.size())) return false;
  const auto units =
      std::accumulate(orders.begin(), orders.end(), std::int64_t{0},
                      [](std::int64_t sum, const SaleOrder& order) { return sum + order.units; });
  return take_units(at, sale, units, epoch);
}

bool SqlOrderStore::take_units(Connection& at, long long sale, std::int64_t units,
                               std::int64_t epoch) const {
  prepare(at);
  at.take_epoch = epoch;
  at.take_units = units;
  at.take_sale = sale;
  at.take->execute(true);
  return at.take->get_affected_rows() == 1;
}

InsertResult SqlOrderStore::insert_one_by_one(Connection& at, long long sale,
                                              std::span<const SaleOrder> orders,
                                              std::int64_t epoch) const {
  InsertResult result;
  for (std::size_t i = 0; i < orders.size(); ++i)
    if (auto reason = insert_one(at, sale, orders[i], epoch, result); !reason.empty())
      result.rejected.push_back({.index = i, .reason = std::move(reason)});
  return result;
}

/// Why the order can never be in the database; empty: its row is, and counted.
std::string SqlOrderStore::insert_row(Connection& at, long long sale, const SaleOrder& order,
                                      InsertResult& result) const {
  Columns row;
  row.resize(1);
  row.sale[0] = sale;
  row.set(0, order);
  try {
    soci::statement one = insert_of(at.sql, row);
    one.execute(true);
    if (one.get_affected_rows() == 0) {
      auto there = find(at, sale, order.id);
      if (there) there->state = order.state;  // it may have ended meanwhile
      if (there != order)
        return "another order in the database has its id, its number, its place (buyer, n) or its "
               "request";
      ++result.repeated;
      return {};
    }
  } catch (const soci::soci_error& failure) {
    if (!dialect_.classify(failure, at.sql).refused) throw;
    return "the database refused it: " + failure.get_error_message();
  }
  ++result.inserted;
  return {};
}

/// Why the order can never be in the database; empty: it is.
std::string SqlOrderStore::insert_one(Connection& at, long long sale, const SaleOrder& order,
                                      std::int64_t epoch, InsertResult& result) const {
  const auto before = result.inserted;
  if (auto reason = insert_row(at, sale, order, result); !reason.empty()) return reason;
  if (result.inserted == before || take_units(at, sale, order.units, epoch)) return {};
  result.inserted = before;
  const long long id = order.id;
  long long remaining = 0;
  at.sql << "DELETE FROM sale_orders WHERE sale = :s AND id = :i", soci::use(sale), soci::use(id);
  at.sql << "SELECT remaining FROM sale_stock WHERE id = :s", soci::use(sale),
      soci::into(remaining);
  return fmt::format("the database has {} units left, the order has {}", remaining, order.units);
}

/// Fetches orders of a sale: `where` is a condition with one parameter, `key`.
template <class Key>
std::vector<SaleOrder> fetch(soci::session& sql, std::string_view where, long long sale,
                             const Key& key, std::size_t most) {
  Columns rows;
  rows.resize(std::max<std::size_t>(
      most, 2));  // SOCI 4.0 takes the end behind a vector of one row for "no data"
  soci::statement select =
      (sql.prepare << fmt::format("SELECT {}, state FROM sale_orders WHERE sale = :s AND {}",
                                  order_columns, where),
       soci::use(sale), soci::use(key), soci::into(rows.id), soci::into(rows.number),
       soci::into(rows.buyer), soci::into(rows.n), soci::into(rows.units),
       soci::into(rows.issued_us), soci::into(rows.request), soci::into(rows.state));
  std::vector<SaleOrder> orders;
  if (!select.execute(true)) return orders;
  orders.reserve(rows.id.size());
  for (std::size_t i = 0; i < rows.id.size(); ++i) orders.push_back(rows.order(i));
  return orders;
}

std::optional<SaleOrder> SqlOrderStore::find(Connection& at, long long sale, std::int64_t id) {
  const long long key = id;
  auto found = fetch(at.sql, "id = :k", sale, key, 1);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<SaleOrder> SqlOrderStore::page(const std::string& sale, std::int64_t after,
                                           std::size_t most) {
  return guarded([&](Connection& at) {
    const long long key = after;
    return fetch(at.sql, fmt::format("id > :k ORDER BY id LIMIT {}", most), id_or_none(at, sale),
                 key, most);
  });
}

std::vector<SaleOrder> SqlOrderStore::find(const std::string& sale,
                                           std::span<const std::int64_t> ids) {
  if (ids.empty()) return {};
  return guarded([&](Connection& at) {
    const long long first = ids.front();
    // No range beside it: SQLite would read all of that for the few.
    return fetch(at.sql, fmt::format("id IN (:k, {})", fmt::join(ids, ",")), id_or_none(at, sale),
                 first, ids.size());
  });
}

std::vector<bool> SqlOrderStore::are_taken(const std::string& sale,
                                           std::span<const SaleOrder> orders) {
  std::vector<bool> taken;
  if (orders.empty()) return taken;
  return guarded([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    long long id = 0;
    long long n = 0;
    std::string number;
    std::string buyer;
    std::string request;
    long long rows = 0;
    // Each by its index: for an OR of them SQLite looks at all orders of the sale.
    soci::statement count =
        (at.sql.prepare << "SELECT COUNT(*) FROM ("
                           "SELECT id FROM sale_orders WHERE sale = :s1 AND id = :i UNION "
                           "SELECT id FROM sale_orders WHERE sale = :s2 AND number = :o UNION "
                           "SELECT id FROM sale_orders WHERE sale = :s3 AND buyer = :b3 AND n = :n "
                           "UNION SELECT id FROM sale_orders WHERE sale = :s4 AND buyer = :b4 AND "
                           "request = :r) AS found",
         soci::use(in_sale), soci::use(id), soci::use(in_sale), soci::use(number),
         soci::use(in_sale), soci::use(buyer), soci::use(n), soci::use(in_sale), soci::use(buyer),
         soci::use(request), soci::into(rows));
    for (auto order : orders) {
      id = order.id;
      n = order.n;
      number = order.number;
      buyer = to_column(order.buyer.value);
      request = to_column(order.request.value);
      count.execute(true);
      auto there = rows == 1 ? find(at, in_sale, order.id) : std::nullopt;
      if (there) there->state = order.state;
      taken.push_back(rows > 0 && there != order);
    }
    return taken;
  });
}

std::vector<BuyerTotals> SqlOrderStore::totals(const std::string& sale,
                                               std::span<const BuyerId> buyers) {
  std::vector<BuyerTotals> totals;
  if (buyers.empty()) return totals;
  return guarded([&](Connection& at) {
    const auto in_sale = id_or_none(at, sale);
    std::vector<std::string> names;
    std::string parameters;
    for (const auto& buyer : buyers) {
      parameters += fmt::format("{}:b{}", names.empty() ? "" : ",", names.size());
      names.push_back(to_column(buyer.value));
    }
    const auto size = std::max<std::size_t>(names.size(), 2);  // see fetch()
    std::vector<std::string> buyer(size);
    std::vector<long long> orders(size), live(size), units(size);
    soci::statement select{at.sql};
    select.exchange(soci::use(in_sale));
    for (const auto& name : names) select.exchange(soci::use(name));
    select.exchange(soci::into(buyer));
    for (auto* const column : {&orders, &live, &units}) select.exchange(soci::into(*column));
    select.alloc();
    select.prepare(
        fmt::format("SELECT buyer, COUNT(*), SUM({0}), SUM(CASE WHEN {0} THEN {2} ELSE 0 END) "
                    "FROM sale_orders WHERE sale = :s AND buyer IN ({1}) GROUP BY buyer",
                    stands, parameters, countable_units));
    select.define_and_bind();
    if (!select.execute(true)) return totals;
    for (std::size_t i = 0; i < buyer.size(); ++i)
      totals.push_back({.buyer = {from_column(buyer[i])},
                        .orders = orders[i],
                        .live = live[i],
                        .units = units[i]});
    return totals;
  });
}

/// Of its orders.
void count_orders(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long orders = 0;
  long long units = 0;
  long long odd = 0;
  sql << fmt::format(
      "SELECT COUNT(*), COALESCE(SUM(CASE WHEN {0} THEN {1} ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN {1} <> units THEN 1 WHEN {0} THEN version <> 0 OR reason <> '' "
      "ELSE version <> 1 END), 0) FROM sale_orders WHERE sale = :s",
      stands, countable_units),
      soci::use(sale), soci::into(orders), soci::into(units), soci::into(odd);
  totals.orders = orders;
  totals.units = units;
  totals.odd = odd;
}

/// Of its returns, against the orders that ended.
void count_returns(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long odd_returns = 0;
  sql << fmt::format(
      "SELECT COUNT(*) FROM sale_returns AS back WHERE sale = :s AND NOT (seq = 1 AND "
      "done IN (0, 1) AND EXISTS (SELECT 1 FROM sale_orders AS ended WHERE ended.sale = "
      "back.sale AND ended.id = back.order_id AND ended.units = back.units AND NOT ({})))",
      stands),
      soci::use(sale), soci::into(odd_returns);
  long long not_returned = 0;
  sql << fmt::format(
      "SELECT COUNT(*) FROM sale_orders AS ended WHERE sale = :s AND NOT ({}) AND NOT EXISTS "
      "(SELECT 1 FROM sale_returns AS back WHERE back.sale = ended.sale AND "
      "back.order_id = ended.id AND back.units = ended.units)",
      stands),
      soci::use(sale), soci::into(not_returned);
  totals.odd_returns = odd_returns;
  totals.odd += not_returned;
}

/// Of the changes of its stock.
void count_changes(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long changes = 0;
  long long applied = 0;
  long long last_change = 0;
  sql << fmt::format(
      "SELECT COALESCE(SUM(CASE WHEN state = 'done' OR (state = 'pending' AND delta > 0) "
      "THEN {0} ELSE 0 END), 0), COALESCE(SUM(CASE WHEN state = 'done' THEN {0} ELSE 0 END), 0), "
      "COALESCE(MAX(CASE WHEN state <> 'pending' THEN seq ELSE 0 END), 0) FROM sale_changes "
      "WHERE sale = :s",
      countable_delta),
      soci::use(sale), soci::into(changes), soci::into(applied), soci::into(last_change);
  long long pending = 0;
  long long last_refused = 0;
  long long odd = 0;
  sql << fmt::format(
      "SELECT COALESCE(SUM(CASE WHEN state = 'pending' THEN 1 ELSE 0 END), 0), "
      "COALESCE(MAX(CASE WHEN state = 'refused' THEN seq ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN {} <> delta OR seq < 1 OR "
      "state NOT IN ('done', 'refused', 'pending') OR (state = 'pending' AND seq < latest.id) "
      "THEN 1 ELSE 0 END), 0) FROM sale_changes, (SELECT MAX(seq) AS id FROM sale_changes "
      "WHERE sale = :s) AS latest WHERE sale = :t",
      countable_delta),
      soci::use(sale), soci::use(sale), soci::into(pending), soci::into(last_refused),
      soci::into(odd);
  totals.changes = changes;
  totals.applied = applied;
  totals.last_change = last_change;
  totals.pending_changes = pending;
  totals.last_refused = last_refused;
  totals.odd_changes = odd;
}

DatabaseTotals SqlOrderStore::totals(const std::string& sale) {
  DatabaseTotals totals;
  in_snapshot([&](Connection& at) {
    at.sale_ids.erase(sale);  // whoever looks at all does not trust what was read before
    const auto in_sale = id_or_none(at, sale);
    totals = {.stock = stock_of(at, in_sale)};
    count_orders(at.sql, in_sale, totals);
    count_returns(at.sql, in_sale, totals);
    count_changes(at.sql, in_sale, totals);
    long long odd_epochs = 0;  // '' is none, though it reads as 0
    at.sql << "SELECT COUNT(*) FROM sale_stock WHERE id = :s AND NOT (epoch BETWEEN 0 AND "
              "1000000000000)",
        soci::use(in_sale), soci::into(odd_epochs);
    totals.epoch = odd_epochs > 0 ? -1 : epoch_of(at, in_sale);
  });
  return totals;
}

void SqlOrderStore::keep_definition(const std::string& sale, const Fields& fields) {
  in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    for (const auto& [field, value] : fields) {
      const auto text = to_column(value);
      at.sql << fmt::format("{} sale_definitions (sale, field, value) VALUES (:s, :f, :v) {}",
                            dialect_.insert_prefix, dialect_.insert_suffix),
          soci::use(id), soci::use(field), soci::use(text);
    }
    return true;
  });
}

void SqlOrderStore::change_definition(const std::string& sale, const std::string& field,
                                      const std::string& value) {
  in_transaction([&](Connection& at) {
    const auto id = id_of(at, sale);
    const auto text = to_column(value);
    at.sql << "UPDATE sale_definitions SET value = :v WHERE sale = :s AND field = :f",
        soci::use(text), soci::use(id), soci::use(field);
    return true;
  });
}

OrderStore::Fields SqlOrderStore::definition(const std::string& sale) {
  return guarded([&](Connection& at) {
    Fields fields;
    const auto id = find_id(at, sale);
    if (!id) return fields;
    constexpr std::size_t most = 100;
    std::vector<std::string> field(most);
    std::vector<std::string> value(most);
    const long long in_sale = *id;
    soci::statement select =
        (at.sql.prepare << "SELECT field, value FROM sale_definitions WHERE sale = :s",
         soci::use(in_sale), soci::into(field), soci::into(value));
    if (!select.execute(true)) return fields;
    for (std::size_t i = 0; i < field.size(); ++i)
      fields.emplace_back(field[i], from_column(value[i]));
    return fields;
  });
}

std::int64_t SqlOrderStore::buyers_above(const std::string& sale, std::int64_t limit) {
  return guarded([&](Connection& at) -> std::int64_t {
    long long buyers = 0;
    const long long most = limit;
    const long long id = id_of(at, sale);
    at.sql << "SELECT COUNT(*) FROM (SELECT buyer FROM sale_orders WHERE sale = :s AND "
              "state = 'awaiting' GROUP BY buyer HAVING COUNT(*) > :m) AS above",
        soci::use(id), soci::use(most), soci::into(buyers);
    return buyers;
  });
}

std::optional<SaleOrder> SqlOrderStore::find_number(const std::string& sale,
                                                    const std::string& number) {
  return guarded([&](Connection& at) -> std::optional<SaleOrder> {
    auto found = fetch(at.sql, "number = :k", id_of(at, sale), number, 1);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

std::optional<SaleOrder> SqlOrderStore::find_request(const std::string& sale, const BuyerId& buyer,
                                                     const RequestId& request) {
  return guarded([&](Connection& at) -> std::optional<SaleOrder> {
    const long long in_sale = id_of(at, sale);
    const auto of_buyer = to_column(buyer.value);
    const auto of_request = to_column(request.value);
    long long id = 0;
    at.sql << "SELECT id FROM sale_orders WHERE sale = :s AND buyer = :b AND request = :r",
        soci::use(in_sale), soci::use(of_buyer), soci::use(of_request), soci::into(id);
    if (!at.sql.got_data()) return std::nullopt;
    return find(at, in_sale, id);
  });
}

EndedOrder SqlOrderStore::end_order(const std::string& sale, std::int64_t id, OrderState state,
                                    const std::string& reason) {
  EndedOrder ended;
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    ended.now = end_row(at, in_sale, id, state, reason);
    ended.order = find(at, in_sale, id);
    ended.reason = reason_of(at, in_sale, id);
    if (!ended.now) return false;
    const long long units = ended.order->units;
    at.sql << "UPDATE sale_stock SET remaining = remaining + :u WHERE id = :s", soci::use(units),
        soci::use(in_sale);
    note_return(at, in_sale, id, units);
    return true;
  });
  return ended;
}

InsertResult SqlOrderStore::insert_ended(const std::string& sale, const SaleOrder& order,
                                         OrderState state, const std::string& reason,
                                         std::int64_t epoch) {
  InsertResult result;
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    result = {.stale = epoch_of(at, in_sale) != epoch};
    if (result.stale) return false;
    if (auto why = insert_row(at, in_sale, order, result); !why.empty())
      result.rejected.push_back({.index = 0, .reason = std::move(why)});
    if (result.inserted == 0) return false;
    end_row(at, in_sale, order.id, state, reason);
    note_return(at, in_sale, order.id, order.units);
    return true;
  });
  return result;
}

/// False: the order is not there, or has ended before.
bool SqlOrderStore::end_row(Connection& at, long long sale, std::int64_t id, OrderState state,
                            const std::string& reason) {
  const long long key = id;
  const std::string to{to_string(state)};
  const auto why = to_column(reason);
  soci::statement end =
      (at.sql.prepare << "UPDATE sale_orders SET state = :t, reason = :r, version = version + 1 "
                         "WHERE sale = :s AND id = :i AND state = 'awaiting'",
       soci::use(to), soci::use(why), soci::use(sale), soci::use(key));
  end.execute(true);
  return end.get_affected_rows() == 1;
}

void SqlOrderStore::note_return(Connection& at, long long sale, std::int64_t id,
                                std::int64_t units) {
  const long long key = id;
  const long long back = units;
  at.sql << "INSERT INTO sale_returns (sale, order_id, seq, units, done) "
            "VALUES (:s, :i, 1, :u, 0)",
      soci::use(sale), soci::use(key), soci::use(back);
}

std::string SqlOrderStore::reason_of(Connection& at, long long sale, std::int64_t id) {
  const long long key = id;
  std::string reason;
  at.sql << "SELECT reason FROM sale_orders WHERE sale = :s AND id = :i", soci::use(sale),
      soci::use(key), soci::into(reason);
  return from_column(reason);
}

std::vector<std::string> SqlOrderStore::reasons(const std::string& sale,
                                                std::span<const std::int64_t> ids) {
  std::vector<std::string> reasons(ids.size());
  if (ids.empty()) return reasons;
  return guarded([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    const auto size = std::max<std::size_t>(ids.size(), 2);  // see fetch()
    std::vector<long long> id(size);
    std::vector<std::string> reason(size);
    soci::statement select =
        (at.sql.prepare << fmt::format("SELECT id, reason FROM sale_orders WHERE sale = :s AND id "
                                       "IN ({})",
                                       fmt::join(ids, ",")),
         soci::use(in_sale), soci::into(id), soci::into(reason));
    if (!select.execute(true)) return reasons;
    std::unordered_map<std::int64_t, std::string> found;
    for (std::size_t i = 0; i < id.size(); ++i) found.emplace(id[i], from_column(reason[i]));
    for (std::size_t i = 0; i < ids.size(); ++i) reasons[i] = found[ids[i]];
    return reasons;
  });
}

std::vector<OrderReturn> SqlOrderStore::returns(const std::string& sale, std::int64_t after,
                                                std::size_t most, bool only_pending) {
  return guarded([&](Connection& at) {
    const long long in_sale = id_or_none(at, sale);
    const long long key = after;
    const auto size = std::max<std::size_t>(most, 2);  // see fetch()
    std::vector<long long> id(size), seq(size), units(size), done(size);
    soci::statement select =
        (at.sql.prepare << fmt::format(
             "SELECT order_id, seq, units, done FROM sale_returns WHERE sale = :s AND "
             "order_id > :k {} ORDER BY order_id, seq LIMIT {}",
             only_pending ? "AND done = 0" : "", most),
         soci::use(in_sale), soci::use(key), soci::into(id), soci::into(seq), soci::into(units),
         soci::into(done));
    if (!select.execute(true)) id.clear();
    std::vector<OrderReturn> returns;
    for (std::size_t i = 0; i < id.size(); ++i)
      if (auto order = find(at, in_sale, id[i]))
        returns.push_back(
            {.order = std::move(*order), .seq = seq[i], .units = units[i], .done = done[i] != 0});
    return returns;
  });
}

void SqlOrderStore::return_done(const std::string& sale, std::int64_t id, std::int64_t seq) {
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    const long long key = id;
    const long long of_order = seq;
    at.sql << "UPDATE sale_returns SET done = 1 WHERE sale = :s AND order_id = :i AND seq = :q",
        soci::use(in_sale), soci::use(key), soci::use(of_order);
    return true;
  });
}

std::optional<StockChange> SqlOrderStore::pending(Connection& at, long long sale) {
  long long seq = 0;
  long long delta = 0;
  at.sql << "SELECT seq, delta FROM sale_changes WHERE sale = :s AND state = 'pending'",
      soci::use(sale), soci::into(seq), soci::into(delta);
  if (!at.sql.got_data()) return std::nullopt;
  return StockChange{.seq = seq, .delta = delta};
}

std::optional<StockChange> SqlOrderStore::pending_stock_change(const std::string& sale) {
  return guarded([&](Connection& at) { return pending(at, id_of(at, sale)); });
}

std::optional<StockChange> SqlOrderStore::begin_stock_change(const std::string& sale,
                                                             std::int64_t stock) {
  std::optional<StockChange> change;
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    change = pending(at, in_sale);
    if (change) return false;
    const auto there = stock_of(at, in_sale);
    const long long has = sum(there.initial, there.changed);
    if (has == stock) return false;
    const long long seq = last_change(at, in_sale) + 1;
    const long long delta = stock - has;
    at.sql << "INSERT INTO sale_changes (sale, seq, delta, state) VALUES (:s, :q, :d, 'pending')",
        soci::use(in_sale), soci::use(seq), soci::use(delta);
    if (delta > 0) change_stock(at, in_sale, delta);
    change = StockChange{.seq = seq, .delta = delta, .now = true};
    return true;
  });
  return change;
}

void SqlOrderStore::change_stock(Connection& at, long long sale, long long delta) {
  at.sql << "UPDATE sale_stock SET remaining = remaining + :d, changed = changed + :e "
            "WHERE id = :s",
      soci::use(delta), soci::use(delta), soci::use(sale);
}

void SqlOrderStore::end_stock_change(const std::string& sale, std::int64_t seq, bool applied) {
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    const auto change = pending(at, in_sale);
    if (!change || change->seq != seq) return false;  // another process has ended it
    end_change(at, in_sale, *change, applied);
    return true;
  });
}

void SqlOrderStore::end_change(Connection& at, long long sale, const StockChange& change,
                               bool applied) {
  const std::string state = applied ? "done" : "refused";
  const long long key = change.seq;
  at.sql << "UPDATE sale_changes SET state = :t WHERE sale = :s AND seq = :q", soci::use(state),
      soci::use(sale), soci::use(key);
  if (change.delta < 0 && applied) change_stock(at, sale, change.delta);
  if (change.delta > 0 && !applied) change_stock(at, sale, -change.delta);
}

long long SqlOrderStore::last_change(Connection& at, long long sale) {
  long long last = 0;
  at.sql << "SELECT COALESCE(MAX(seq), 0) FROM sale_changes WHERE sale = :s", soci::use(sale),
      soci::into(last);
  return last;
}

std::int64_t SqlOrderStore::last_stock_change(const std::string& sale) {
  return guarded([&](Connection& at) { return last_change(at, id_of(at, sale)); });
}

void SqlOrderStore::note_stock_change(const std::string& sale, std::int64_t seq,
                                      std::int64_t stock) {
  in_transaction([&](Connection& at) {
    const long long in_sale = id_of(at, sale);
    if (last_change(at, in_sale) >= seq) return false;
    if (const auto change = pending(at, in_sale)) end_change(at, in_sale, *change, false);
    const auto there = stock_of(at, in_sale);
    const long long key = seq;
    const long long delta = difference(stock, sum(there.initial, there.changed));
    if (sum(there.left, delta) < 0)
      throw Error{Errc::database,
                  fmt::format("{}: sale '{}' has {} units of {} left, so that its stock cannot be "
                              "{}, as change {} of it, which is lost here, has made it",
                              dialect_.description, sale, there.left,
                              sum(there.initial, there.changed), stock, seq)};
    at.sql << "INSERT INTO sale_changes (sale, seq, delta, state) VALUES (:s, :q, :d, 'done')",
        soci::use(in_sale), soci::use(key), soci::use(delta);
    change_stock(at, in_sale, delta);
    return true;
  });
}

std::string SqlOrderStore::identity() {
  if (!identity_.empty()) return identity_;
  const auto find = [&](Connection& at) {
    at.sql << "SELECT identity FROM sale_database WHERE id = 1", soci::into(identity_);
    return at.sql.got_data();
  };
  if (guarded(find)) return identity_;
  const auto word = random_hex_128();
  in_transaction([&](Connection& at) {
    at.sql << fmt::format("{} sale_database (id, identity) VALUES (1, :w) {}",
                          dialect_.insert_prefix, dialect_.insert_suffix),
        soci::use(word);
    return find(at);
  });
  return identity_;
}

}  // namespace

std::unique_ptr<OrderStore> make_sql_order_store(SqlDialect dialect) {
  return std::make_unique<SqlOrderStore>(std::move(dialect));
}

}  // namespace sluice::sale

namespace sluice {

std::unique_ptr<OrderStore> open_order_store(const std::string& url) {
  struct Scheme {
    std::string_view prefix;
    sale::SqlDialect (*dialect)(const std::string& rest);
  };
  static constexpr Scheme schemes[] = {{"sqlite:", sale::sqlite_dialect}};
  for (const auto& scheme : schemes)
    if (url.starts_with(scheme.prefix))
      return sale::make_sql_order_store(scheme.dialect(url.substr(scheme.prefix.size())));
  throw Error{Errc::bad_argument,
              "the URL of a database for orders begins with sqlite: (as in "
              "sqlite:/var/lib/shop/orders.db), not with '" +
                  url.substr(0, url.find(':')) + "'"};
}

}  // namespace sluice
