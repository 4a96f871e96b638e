// Each row of the table of failures (sale/sql/failures.hpp), of a statement and of the COMMIT, on
// each database: a test makes the failure, by its real cause wherever it can, and the outcome is
// the one of the table.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3/soci-sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "sale/database_servers.hpp"
#include "sale/sql/failures.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/schemes.hpp"
#include "support/comes_true.hpp"
#include "support/cutting_proxy.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using sale::OnceMore;
using sale::SqlTrouble;

/// A database of its own for one failure, and an OrderStore that meets it.
class BrokenDatabase {
 public:
  virtual ~BrokenDatabase() = default;
  virtual void sql(const std::string& text) = 0;
  /// An INSERT of orders does this, too.
  virtual void trigger(const std::string& body) = 0;
  virtual void drop_trigger() = 0;

  OrderStore& orders() { return *orders_; }
  std::unique_ptr<OrderStore> orders_;
  std::vector<std::jthread> others_;
  std::shared_ptr<void> held_;
};

class BrokenServer : public BrokenDatabase {
 public:
  BrokenServer(test::DatabaseServer& at, std::string name_of_ids, std::string sleeping)
      : server(at), ids_(std::move(name_of_ids)), sleeping_(std::move(sleeping)) {
    auto url = server.url_with_password(database);
    const auto port = fmt::format(":{}/", server.port());
    url.replace(url.rfind(port), port.size(), fmt::format(":{}/", proxy.port()));
    orders_ = open_order_store(url, {.answer = 3s});
  }
  void sql(const std::string& text) override { server.sql(database, text); }
  void trigger(const std::string& body) override { write_trigger(body, false); }
  /// The same once, whatever is rolled back.
  void once(const std::string& body, bool at_commit = false) {
    write_trigger(once_of(body), at_commit);
  }
  std::vector<std::string> sessions(const std::string& which) const {
    std::istringstream ids{server.sql(database, ids_ + which)};
    return {std::istream_iterator<std::string>{ids}, {}};
  }
  void end(const std::string& how, const std::string& which = "") {
    for (const auto& id : sessions(which)) server.sql(database, fmt::format(fmt::runtime(how), id));
  }
  /// To the session of the store that sleeps.
  void end_sleeping(const std::string& how) {
    others_.emplace_back([this, how] {
      if (test::comes_true([&] { return !sessions(sleeping_).empty(); })) end(how, sleeping_);
    });
  }
  virtual void write_trigger(const std::string& body, bool at_commit) = 0;
  virtual std::string once_of(const std::string& body) const = 0;

  test::DatabaseServer& server;
  const std::string database = server.make_database();
  test::CuttingProxy proxy{server.port()};
  long deadlocks = 0;  // before

 private:
  std::string ids_;
  std::string sleeping_;
};

class BrokenPostgresql : public BrokenServer {
 public:
  BrokenPostgresql()
      : BrokenServer(postgresql(),
                     "SELECT pid FROM pg_stat_activity WHERE usename = 'shop' AND datname = "
                     "current_database()",
                     " AND wait_event = 'PgSleep'") {}
  void write_trigger(const std::string& body, bool at_commit) override {
    sql("CREATE SEQUENCE IF NOT EXISTS tries; CREATE FUNCTION deed() RETURNS trigger SECURITY "
        "DEFINER AS $$ BEGIN " +
        body + "; RETURN NEW; END $$ LANGUAGE plpgsql");
    sql(at_commit ? "CREATE CONSTRAINT TRIGGER deed AFTER INSERT ON sale_orders DEFERRABLE "
                    "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION deed()"
                  : "CREATE TRIGGER deed BEFORE INSERT ON sale_orders FOR EACH ROW EXECUTE "
                    "FUNCTION deed()");
  }
  void drop_trigger() override { sql("DROP TRIGGER IF EXISTS deed ON sale_orders"); }
  std::string once_of(const std::string& body) const override {
    return fmt::format("IF nextval('tries') = 1 THEN {}; END IF", body);
  }
};

class BrokenMariadb : public BrokenServer {
 public:
  BrokenMariadb()
      : BrokenServer(mariadb(),
                     // In a trigger the user is the one who made it.
                     "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND "
                     "id <> CONNECTION_ID()",
                     " AND command = 'Query' AND time_ms > 300") {
    sql("CREATE TABLE tries (n INT) ENGINE = MyISAM");
  }
  void write_trigger(const std::string& body, bool) override {
    sql("DELIMITER //\nCREATE TRIGGER deed BEFORE INSERT ON sale_orders FOR EACH ROW BEGIN " +
        body + "; END //");
  }
  void drop_trigger() override { sql("DROP TRIGGER IF EXISTS deed"); }
  std::string once_of(const std::string& body) const override {
    return fmt::format(
        "INSERT INTO tries VALUES (1); IF (SELECT COUNT(*) FROM tries) = 1 THEN {}; END IF", body);
  }
};

class BrokenSqlite : public BrokenDatabase {
 public:
  BrokenSqlite() { open({}); }
  void sql(const std::string& text) override { soci::session{soci::sqlite3, "db=" + file} << text; }
  void trigger(const std::string& body) override {
    sql("CREATE TRIGGER deed BEFORE INSERT ON sale_orders BEGIN " + body + "; END");
  }
  void drop_trigger() override { sql("DROP TRIGGER IF EXISTS deed"); }
  /// Each session begins with a statement more.
  void open(const std::vector<std::string_view>& more) {
    orders_.reset();
    auto dialect = sale::sqlite_dialect("sqlite:" + file);
    dialect.on_connect.insert(dialect.on_connect.end(), more.begin(), more.end());
    orders_ = std::make_unique<sale::SqlOrderStore>(dialect);
  }

  const test::TempDir folder;
  const std::string file = (folder / "orders.db").string();
};

enum class At { statement, commit };
constexpr bool lasts = true;  // until the test ends it

template <class Database>
struct CaseOf {
  std::string name;
  SqlTrouble trouble;
  At at;
  std::function<void(Database&)> begin;
  bool is_lasting = false;
  std::function<void(Database&)> end = [](Database&) {};
};

struct Case {
  std::string database, name;
  SqlTrouble trouble;
  At at;
  bool is_lasting;
  std::function<std::unique_ptr<BrokenDatabase>()> make;
  std::function<void(BrokenDatabase&)> begin, end;

  friend void PrintTo(const Case& one, std::ostream* to) { *to << one.database << ' ' << one.name; }
};

template <class Database>
void add(std::vector<Case>& all, const std::string& database,
         const std::vector<CaseOf<Database>>& cases) {
  for (const auto& one : cases)
    all.push_back({.database = database,
                   .name = one.name,
                   .trouble = one.trouble,
                   .at = one.at,
                   .is_lasting = one.is_lasting,
                   .make = [] { return std::make_unique<Database>(); },
                   .begin = [one](auto& on) { one.begin(dynamic_cast<Database&>(on)); },
                   .end = [one](auto& on) { one.end(dynamic_cast<Database&>(on)); }});
}

// --- the same on all databases ---

template <class Database>
std::vector<CaseOf<Database>> refusals() {
  return {{"unique_of_a_trigger", SqlTrouble::refused, At::statement,
           [](auto& on) {
             on.sql("CREATE TABLE seen (n INT PRIMARY KEY)");
             on.sql("INSERT INTO seen VALUES (1)");
             on.trigger("INSERT INTO seen VALUES (1)");
           },
           lasts},
          {"check_of_a_trigger", SqlTrouble::refused, At::statement,
           [](auto& on) {
             on.sql("CREATE TABLE few (n INT CHECK (n < 1))");
             on.trigger("INSERT INTO few VALUES (1)");
           },
           lasts}};
}

// --- PostgreSQL ---

CaseOf<BrokenPostgresql> raised(const char* code, SqlTrouble trouble, At at) {
  return {fmt::format("raised_{}", code), trouble, at, [=](BrokenPostgresql& on) {
            on.once(fmt::format("RAISE EXCEPTION 'as asked' USING ERRCODE = '{}'", code),
                    at == At::commit);
          }};
}

long deadlocks(const BrokenServer& on) {
  for (const auto& kind : database_kinds())
    if (on.server.url("").starts_with(kind.name)) return kind.deadlocks(on.server.url(on.database));
  return 0;
}

void expect_deadlock(const BrokenServer& on) {
  EXPECT_TRUE(test::comes_true([&] { return deadlocks(on) > on.deadlocks; }));
}

/// Another transaction and the store's wait for each other; the store's is the one that ends.
void wait_for_each_other(BrokenServer& on, const std::string& pause, const std::string& begin) {
  on.deadlocks = deadlocks(on);
  on.sql("CREATE TABLE bait (n INT)");
  std::string rows = "INSERT INTO bait VALUES (0)";
  for (int i = 0; i < 300; ++i) rows += ",(0)";
  on.sql(rows);
  on.trigger("UPDATE bait SET n = n + 1");
  on.others_.emplace_back([&on, pause, begin] {
    on.sql(
        fmt::format("{}; UPDATE bait SET n = n + 1; {}; UPDATE sale_stock SET changed = changed "
                    "+ 0, remaining = remaining + 0; UPDATE sale_stock SET moved = moved + 1; "
                    "UPDATE sale_stock SET moved = moved - 1; COMMIT",
                    begin, pause));
  });
}

std::vector<CaseOf<BrokenPostgresql>> of_postgresql() {
  using enum SqlTrouble;
  std::vector<CaseOf<BrokenPostgresql>> all{
      {"deadlock", undone, At::statement,
       [](auto& on) {
         wait_for_each_other(on, "SELECT pg_sleep(0.5)", "SET deadlock_timeout = '60s'; BEGIN");
         test::comes_true([&] {
           return on.server.sql(on.database,
                                "SELECT COUNT(*) FROM pg_stat_activity WHERE query "
                                "LIKE 'SET deadlock%' AND wait_event = 'PgSleep'") == "1\n";
         });
       },
       false, [](auto& on) { expect_deadlock(on); }},
      raised("40001", undone, At::statement),
      raised("55P03", undone, At::statement),
      raised("40001", undone, At::commit),
      {"foreign_key_at_the_end", refused, At::commit,
       [](auto& on) {
         on.sql("CREATE TABLE parents (n INT PRIMARY KEY)");
         on.sql("CREATE TABLE seen (n INT REFERENCES parents (n) DEFERRABLE INITIALLY DEFERRED)");
         on.trigger("INSERT INTO seen VALUES (1)");
       },
       lasts},
      {"cancelled", ended, At::statement,
       [](auto& on) {
         on.once("PERFORM pg_sleep(20)");
         on.end_sleeping("SELECT pg_cancel_backend({})");
       }},
      {"cancelled", ended, At::commit,
       [](auto& on) {
         on.once("PERFORM pg_sleep(20)", true);
         on.end_sleeping("SELECT pg_cancel_backend({})");
       }},
      {"primary_of_before", read_only, At::statement,
       [](auto& on) {
         on.sql("ALTER ROLE shop SET default_transaction_read_only = on");
         on.end("SELECT pg_terminate_backend({})");
       },
       lasts,
       [](auto& on) {
         on.sql("ALTER ROLE shop RESET default_transaction_read_only");
         on.end("SELECT pg_terminate_backend({})");
       }},
      raised("25006", read_only, At::commit),
      raised("53100", full, At::statement),
      raised("53100", full, At::commit),
      raised("XX001", corrupt, At::statement),
      raised("XX001", corrupt, At::commit),
      {"killed_idle", lost, At::statement,
       [](auto& on) { on.end("SELECT pg_terminate_backend({})"); }},
      {"killed", lost, At::statement,
       [](auto& on) {
         on.once("PERFORM pg_sleep(20)");
         on.end_sleeping("SELECT pg_terminate_backend({})");
       }},
      {"no_session_to_be_had", lost, At::statement,
       [](auto& on) {
         on.sql("ALTER ROLE shop NOSUPERUSER CONNECTION LIMIT 0");
         on.end("SELECT pg_terminate_backend({})");
       },
       lasts, [](auto& on) { on.sql("ALTER ROLE shop SUPERUSER CONNECTION LIMIT -1"); }},
      {"killed_before", lost, At::commit,
       [](auto& on) {
         on.proxy.do_at("COMMIT", [&on] { on.end("SELECT pg_terminate_backend({}, 10000)"); });
       }},
      {"killed", lost, At::commit,
       [](auto& on) {
         on.once("PERFORM pg_sleep(20)", true);
         on.end_sleeping("SELECT pg_terminate_backend({})");
       }},
      {"stands_still", lost, At::commit,
       [](auto& on) { on.proxy.do_at("COMMIT", [&on] { on.server.stop(); }); }, false,
       [](auto& on) { on.server.cont(); }},
      raised("40003", other, At::statement),
      raised("40003", other, At::commit)};
  for (auto& one : refusals<BrokenPostgresql>()) all.push_back(std::move(one));
  return all;
}

// --- MariaDB ---

CaseOf<BrokenMariadb> signalled(int code, SqlTrouble trouble) {
  return {fmt::format("signalled_{}", code), trouble, At::statement, [=](BrokenMariadb& on) {
            on.once(fmt::format("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {}", code));
          }};
}

std::vector<CaseOf<BrokenMariadb>> of_mariadb() {
  using enum SqlTrouble;
  std::vector<CaseOf<BrokenMariadb>> all{
      {"deadlock", undone, At::statement,
       [](auto& on) {
         wait_for_each_other(on, "DO SLEEP(0.7)", "BEGIN");
         test::comes_true([&] {
           return on.server.sql(on.database,
                                "SELECT COUNT(*) FROM information_schema.processlist WHERE info "
                                "LIKE 'DO SLEEP%'") == "1\n";
         });
       },
       false, [](auto& on) { expect_deadlock(on); }},
      signalled(1205, undone),
      {"limit_of_a_statement", ended, At::statement, [](auto& on) { on.once("DO SLEEP(20)"); }},
      {"cancelled", ended, At::statement,
       [](auto& on) {
         on.once("DO SLEEP(20)");
         on.end_sleeping("KILL QUERY {}");
       }},
      {"read_only", read_only, At::statement, [](auto& on) { on.sql("SET GLOBAL read_only = 1"); },
       lasts, [](auto& on) { on.sql("SET GLOBAL read_only = 0"); }},
      {"read_only", read_only, At::commit,
       [](auto& on) { on.proxy.do_at("COMMIT", [&on] { on.sql("SET GLOBAL read_only = 1"); }); },
       lasts, [](auto& on) { on.sql("SET GLOBAL read_only = 0"); }},
      {"a_table_of_the_memory", full, At::statement,
       [](auto& on) {
         on.sql("SET max_heap_table_size = 16384; CREATE TABLE small (t CHAR(250)) ENGINE=MEMORY");
         std::string rows = "INSERT INTO small VALUES ('')";
         for (int i = 0; i < 1000; ++i) rows += ",('')";
         EXPECT_THROW(on.sql("SET max_heap_table_size = 16384; " + rows), std::runtime_error);
         on.trigger("INSERT INTO small VALUES ('')");
       },
       lasts},
      signalled(1034, corrupt),
      {"killed_idle", lost, At::statement, [](auto& on) { on.end("KILL {}"); }},
      {"killed", lost, At::statement,
       [](auto& on) {
         on.once("DO SLEEP(20)");
         on.end_sleeping("KILL {}");
       }},
      {"no_session_to_be_had", lost, At::statement,
       [](auto& on) {
         on.sql("ALTER USER shop@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1");
         on.held_ = open_order_store(on.server.url_with_password(on.database));
         on.end("KILL {}", " ORDER BY id LIMIT 1");
       },
       lasts, [](auto& on) { on.sql("ALTER USER shop@'127.0.0.1' WITH MAX_USER_CONNECTIONS 0"); }},
      {"killed_before", lost, At::commit,
       [](auto& on) { on.proxy.do_at("COMMIT", [&on] { on.end("KILL {}"); }); }},
      {"stands_still", lost, At::commit,
       [](auto& on) { on.proxy.do_at("COMMIT", [&on] { on.server.stop(); }); }, false,
       [](auto& on) { on.server.cont(); }},
      signalled(1105, other)};
  for (auto& one : refusals<BrokenMariadb>()) all.push_back(std::move(one));
  return all;
}

// --- SQLite ---

/// A file of this process may have so many bytes.
void limit_files(rlim_t size) {
  static const auto before = ::signal(SIGXFSZ, SIG_IGN);
  static_cast<void>(before);
  rlimit now{};
  ::getrlimit(RLIMIT_FSIZE, &now);
  now.rlim_cur = std::min(size, now.rlim_max);
  ::setrlimit(RLIMIT_FSIZE, &now);
}

/// Overwrites the first page of the table of orders.
void damage(BrokenSqlite& on) {
  on.orders_.reset();
  long long page = 0;
  soci::session{soci::sqlite3, "db=" + on.file}
      << "SELECT rootpage FROM sqlite_master WHERE name = 'sale_orders'",
      soci::into(page);
  std::filesystem::copy_file(on.file, on.file + ".whole");
  std::fstream file{on.file, std::ios::in | std::ios::out | std::ios::binary};
  file.seekp((page - 1) * 4096) << std::string(4096, 'x');
}

std::vector<CaseOf<BrokenSqlite>> of_sqlite() {
  using enum SqlTrouble;
  std::vector<CaseOf<BrokenSqlite>> all{
      {"held_by_another", undone, At::statement,
       [](auto& on) {
         auto other = std::make_shared<soci::session>(soci::sqlite3, "db=" + on.file);
         *other << "BEGIN IMMEDIATE";
         on.others_.emplace_back([other] {
           std::this_thread::sleep_for(1500ms);  // more than SQLite itself waits
           *other << "ROLLBACK";
         });
       }},
      {"foreign_key_at_the_end", refused, At::commit,
       [](auto& on) {
         on.sql("CREATE TABLE parents (n INTEGER PRIMARY KEY)");
         on.sql("CREATE TABLE seen (n INT REFERENCES parents (n) DEFERRABLE INITIALLY DEFERRED)");
         on.trigger("INSERT INTO seen VALUES (1)");
       },
       lasts},
      {"read_only", read_only, At::statement, [](auto& on) { on.open({"PRAGMA query_only = 1"}); },
       lasts, [](auto& on) { on.open({}); }},
      {"most_pages", full, At::statement,
       [](auto& on) {
         on.trigger("INSERT INTO sale_definitions VALUES (1, NEW.number, zeroblob(100000))");
         on.open({"PRAGMA max_page_count = 1"});  // as many as it has
       },
       lasts, [](auto& on) { on.open({}); }},
      {"limit_of_a_file", full, At::commit, [](auto&) { limit_files(4096); }, lasts,
       [](auto&) { limit_files(RLIM_INFINITY); }},
      {"overwritten", corrupt, At::statement,
       [](auto& on) {
         damage(on);
         on.open({});
       },
       lasts,
       [](auto& on) {
         on.orders_.reset();
         std::filesystem::rename(on.file + ".whole", on.file);
         on.open({});
       }},
      {"no_such_function", other, At::statement,
       [](auto& on) { on.trigger("SELECT no_such_function()"); }, lasts}};
  for (auto& one : refusals<BrokenSqlite>()) all.push_back(std::move(one));
  return all;
}

const std::vector<Case>& cases() {
  static const auto all = [] {
    std::vector<Case> list;
    add(list, "postgresql", of_postgresql());
    add(list, "mariadb", of_mariadb());
    add(list, "sqlite", of_sqlite());
    return list;
  }();
  return all;
}

class Failures : public testing::TestWithParam<Case> {
 protected:
  /// What the call comes to, by the table.
  void expect_outcome() {
    const auto& row = sale::row_of(GetParam().trouble);
    const bool is_commit = GetParam().at == At::commit;
    const bool is_unknown = is_commit && !row.is_sure;
    const bool heals = !GetParam().is_lasting && row.once_more != OnceMore::never && !is_unknown;
    const bool rejects = GetParam().trouble == SqlTrouble::refused && !is_commit;
    try {
      const auto result = on_->orders().insert("s", orders_from(1, 10));
      EXPECT_TRUE(heals || rejects) << "it did not fail";
      EXPECT_EQ(rejects ? result.rejected.size() : result.inserted, 10U);
      has_happened_ = !rejects;
    } catch (const Error& error) {
      EXPECT_FALSE(heals || rejects) << error.what();
      EXPECT_EQ(error.errc(), row.code) << error.what();
      EXPECT_EQ(error.effect(), is_unknown ? Effect::unknown : Effect::none) << error.what();
      may_have_happened_ = error.effect() == Effect::unknown;
    }
  }

  std::unique_ptr<BrokenDatabase> on_ = GetParam().make();
  bool has_happened_ = false;
  bool may_have_happened_ = false;
};

TEST_P(Failures, SQ10_HaveTheOutcomeOfTheTable) {
  on_->orders().add_sale("s", 1000);
  GetParam().begin(*on_);
  expect_outcome();
  GetParam().end(*on_);
  on_->others_.clear();
  on_->drop_trigger();
  const auto again = on_->orders().insert("s", orders_from(1, 10));
  EXPECT_EQ(again.inserted + again.repeated, 10U);
  if (has_happened_) EXPECT_EQ(again.repeated, 10U);
  if (!has_happened_ && !may_have_happened_) EXPECT_EQ(again.inserted, 10U) << "it had an effect";
  EXPECT_EQ(on_->orders().stock("s")->left, 990);
}

INSTANTIATE_TEST_SUITE_P(All, Failures, testing::ValuesIn(cases()), [](const auto& one) {
  return fmt::format("{}_{}_{}", one.param.database, one.param.name,
                     one.param.at == At::commit ? "at_commit" : "in_a_statement");
});

/// What no test can make, and why.
const std::tuple<std::string_view, SqlTrouble, At> never_seen[] = {
    // A COMMIT in WAL mode waits for nobody, and asks for no page of before.
    {"sqlite", SqlTrouble::undone, At::commit},
    {"sqlite", SqlTrouble::read_only, At::commit},
    {"sqlite", SqlTrouble::corrupt, At::commit},
    {"sqlite", SqlTrouble::other, At::commit},
    // Nobody interrupts it, and there is no session that a server could end.
    {"sqlite", SqlTrouble::ended, At::statement},
    {"sqlite", SqlTrouble::ended, At::commit},
    {"sqlite", SqlTrouble::lost, At::statement},
    {"sqlite", SqlTrouble::lost, At::commit},
    // MariaDB looks at nothing in a COMMIT, unless it is one of a cluster.
    {"mariadb", SqlTrouble::undone, At::commit},
    {"mariadb", SqlTrouble::refused, At::commit},
    {"mariadb", SqlTrouble::ended, At::commit},
    {"mariadb", SqlTrouble::full, At::commit},
    {"mariadb", SqlTrouble::corrupt, At::commit},
    {"mariadb", SqlTrouble::other, At::commit},
};

TEST(FailureTable, EachRowIsSeenOnEachDatabase) {
  std::set<std::tuple<std::string_view, SqlTrouble, At>> all{std::begin(never_seen),
                                                             std::end(never_seen)};
  for (const auto& one : cases())
    EXPECT_FALSE(!all.emplace(one.database, one.trouble, one.at).second &&
                 std::ranges::count(never_seen, std::tuple{std::string_view{one.database},
                                                           one.trouble, one.at}) > 0)
        << one.database << ' ' << one.name << " is seen";
  EXPECT_EQ(all.size(), std::size(sale::failure_rows) * 2 * 3);
}

TEST(FailureTable, TheCodeItselfGoesBeforeTheBeginningOfSome) {
  const auto of = [](std::string_view state) {
    return sale::trouble_of(state, &sale::FailureRow::postgresql);
  };
  EXPECT_EQ(of("40P01"), SqlTrouble::undone);
  EXPECT_EQ(of("40003"), SqlTrouble::other);
  EXPECT_EQ(of("57P01"), SqlTrouble::lost);
  EXPECT_EQ(of("57014"), SqlTrouble::ended);
  EXPECT_EQ(of("42501"), SqlTrouble::other);
  EXPECT_EQ(sale::trouble_of("1", &sale::FailureRow::sqlite), SqlTrouble::other);
  for (const auto& row : sale::failure_rows) EXPECT_EQ(&sale::row_of(row.trouble), &row);
}

}  // namespace
}  // namespace sluice
