/// The program sluice-serve on real servers, of which each can be put into each kind of fault.
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <memory>
#include <optional>

#include "sale/database_servers.hpp"
#include "server/all_routes.hpp"
#include "server/fault_matrix.hpp"
#include "server/served.hpp"
#include "server/shop_keys.hpp"
#include "sluice/open.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

/// Stops and continues, until its end: each answer takes most of a second.
class Slowness {
 public:
  Slowness(std::function<void()> stop, std::function<void()> cont)
      : thread_([stop = std::move(stop), cont = std::move(cont)](const std::stop_token& ended) {
          while (!ended.stop_requested()) {
            stop();
            std::this_thread::sleep_for(std::chrono::milliseconds{700});
            cont();
            std::this_thread::sleep_for(std::chrono::milliseconds{200});
          }
        }) {}

 private:
  std::jthread thread_;
};

/// A server, or a file, that gets into trouble as a row of the matrix says.
class Dependency {
 public:
  virtual ~Dependency() = default;
  virtual std::string url() = 0;
  /// False: this one has no such fault.
  virtual bool begin(Fault fault, Process& service) = 0;
  virtual void end(Fault fault, Process& service) = 0;
};

class FaultyRedis : public Dependency {
 public:
  std::string url() override { return redis_.url(); }
  bool begin(Fault fault, Process&) override {
    if (backup_.empty()) back_up();
    switch (fault) {
      case Fault::away: redis_.kill(); break;
      case Fault::refuses: run({"ACL", "SETUSER", "default", "-@all", "+acl", "+client"}); break;
      case Fault::slow:
        slowness_.emplace([this] { redis_.stop(); }, [this] { redis_.cont(); });
        break;
      case Fault::stands_still: redis_.stop(); break;
      case Fault::full: run({"CONFIG", "SET", "maxmemory", "1"}); break;
      case Fault::read_only: run({"REPLICAOF", "127.0.0.1", "1"}); break;
      case Fault::rolled_back: bring_back(); break;
    }
    return true;
  }
  void end(Fault fault, Process&) override {
    switch (fault) {
      case Fault::away: redis_.start(); break;
      case Fault::refuses: run({"ACL", "SETUSER", "default", "+@all"}); break;
      case Fault::slow: slowness_.reset(); break;
      case Fault::stands_still: redis_.cont(); break;
      case Fault::full: run({"CONFIG", "SET", "maxmemory", "0"}); break;
      case Fault::read_only: run({"REPLICAOF", "NO", "ONE"}); break;
      case Fault::rolled_back: break;
    }
  }

 private:
  void run(const std::vector<std::string>& words) {
    std::vector<std::string> line{"redis-cli", "-p", std::to_string(redis_.port())};
    line.insert(line.end(), words.begin(), words.end());
    Process client{line, {.directory = {}, .environment = {}, .output = folder_ / "answer"}};
    EXPECT_EQ(client.wait(), 0) << text_of(folder_ / "answer");
  }

  /// All keys, as they are before the first fault.
  void back_up() {
    const auto store = open(redis_.url());
    const auto keys = store->run({"KEYS", "*"}).get();
    for (const auto& key : keys.as_items()) {
      backup_.push_back(key.as_text());
      backup_.push_back(store->run({"DUMP", key.as_text()}).get().as_text());
    }
  }
  /// In one step, on a server that was started again.
  void bring_back() {
    redis_.restart();
    std::vector<std::string_view> words{
        "EVAL",
        "redis.call('flushall') for i = 1, #ARGV, 2 do redis.call('restore', ARGV[i], 0, "
        "ARGV[i + 1]) end",
        "0"};
    words.insert(words.end(), backup_.begin(), backup_.end());
    open(redis_.url())->run(Words{words}).get();
  }

  TempDir folder_;
  RedisServer redis_{{"appendonly yes", "appendfsync always"}};
  std::vector<std::string> backup_;  // keys and what they have, in turn
  std::optional<Slowness> slowness_;
};

/// PostgreSQL or MariaDB.
class FaultyServer : public Dependency {
 public:
  explicit FaultyServer(std::unique_ptr<DatabaseServer> server)
      : server_(std::move(server)), database_(server_->make_database()) {}
  std::string url() override { return server_->url_with_password(database_); }
  bool begin(Fault fault, Process&) override {
    switch (fault) {
      case Fault::away: server_->kill(); break;
      case Fault::refuses: refuse(true); break;
      case Fault::slow:
        slowness_.emplace([this] { server_->stop(); }, [this] { server_->cont(); });
        break;
      case Fault::stands_still: server_->stop(); break;
      case Fault::full: fill(true); break;
      case Fault::read_only: set_read_only(true); break;
      case Fault::rolled_back: server_->sql(database_, "DELETE FROM sale_messages"); break;
    }
    return true;
  }
  void end(Fault fault, Process&) override {
    switch (fault) {
      case Fault::away: server_->start(); break;
      case Fault::refuses: refuse(false); break;
      case Fault::slow: slowness_.reset(); break;
      case Fault::stands_still: server_->cont(); break;
      case Fault::full: fill(false); break;
      case Fault::read_only: set_read_only(false); break;
      case Fault::rolled_back: break;
    }
  }

 protected:
  virtual void refuse(bool on) = 0;
  virtual void set_read_only(bool on) = 0;
  virtual std::string trigger(const std::string& table, const std::string& event) const = 0;

  /// Each change fails as on a full disk.
  void fill(bool on) {
    for (const std::string table : {"sale_orders", "sale_stock", "sale_database", "sale_payments"})
      for (const std::string event : {"INSERT", "UPDATE"})
        server_->sql(database_, on ? trigger(table, event) : drop_trigger(table, event));
  }
  virtual std::string drop_trigger(const std::string& table, const std::string& event) const = 0;

  std::unique_ptr<DatabaseServer> server_;
  const std::string database_;

 private:
  std::optional<Slowness> slowness_;
};

class FaultyPostgresql : public FaultyServer {
 public:
  FaultyPostgresql() : FaultyServer(start_quick_postgresql()) {}

 private:
  void end_sessions() {
    server_->sql("postgres",
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                     database_ + "'");
  }
  void refuse(bool on) override {
    server_->sql("postgres", fmt::format("ALTER DATABASE {} ALLOW_CONNECTIONS {}", database_,
                                         on ? "false" : "true"));
    end_sessions();
  }
  void set_read_only(bool on) override {
    server_->sql("postgres", fmt::format("ALTER DATABASE {} SET default_transaction_read_only = {}",
                                         database_, on ? "on" : "off"));
    end_sessions();
  }
  std::string trigger(const std::string& table, const std::string& event) const override {
    return fmt::format(
        "CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no room' "
        "USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql; "
        "CREATE TRIGGER fails_{1} BEFORE {1} ON {0} FOR EACH ROW EXECUTE FUNCTION fail()",
        table, event);
  }
  std::string drop_trigger(const std::string& table, const std::string& event) const override {
    return fmt::format("DROP TRIGGER fails_{} ON {}", event, table);
  }
};

class FaultyMariadb : public FaultyServer {
 public:
  FaultyMariadb() : FaultyServer(start_quick_mariadb()) {}

 private:
  void refuse(bool on) override {
    server_->sql("mysql", fmt::format("ALTER USER shop@'127.0.0.1' ACCOUNT {}; {}",
                                      on ? "LOCK" : "UNLOCK", on ? "KILL USER shop" : ""));
  }
  void set_read_only(bool on) override {
    server_->sql("mysql", fmt::format("SET GLOBAL read_only = {}", on ? 1 : 0));
  }
  std::string trigger(const std::string& table, const std::string& event) const override {
    return fmt::format(
        "CREATE TRIGGER fails_{0}_{1} BEFORE {1} ON {0} FOR EACH ROW SIGNAL SQLSTATE 'HY000' SET "
        "MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'no room'",
        table, event);
  }
  std::string drop_trigger(const std::string& table, const std::string& event) const override {
    return fmt::format("DROP TRIGGER fails_{}_{}", table, event);
  }
};

class FaultySqlite : public Dependency {
 public:
  std::string url() override { return "sqlite:" + file(); }
  bool begin(Fault fault, Process& service) override {
    switch (fault) {
      case Fault::away: std::filesystem::rename(file(), file() + ".away"); return true;
      case Fault::stands_still: hold_ = hold(); return true;
      case Fault::full: limit(service, std::filesystem::file_size(file() + "-wal")); return true;
      default: return false;
    }
  }
  void end(Fault fault, Process& service) override {
    if (fault == Fault::away) std::filesystem::rename(file() + ".away", file());
    if (fault == Fault::stands_still) hold_.reset();
    if (fault == Fault::full) limit(service, RLIM_INFINITY);
  }

 private:
  std::string file() const { return (folder_ / "orders.db").string(); }
  /// The size that a file of the service may have.
  static void limit(Process& service, rlim_t bytes) {
    const rlimit to{bytes, RLIM_INFINITY};
    EXPECT_EQ(::prlimit(service.pid(), RLIMIT_FSIZE, &to, nullptr), 0);
  }
  /// Another program that writes, and does not come to an end.
  std::shared_ptr<void> hold() const {
    auto sql = std::make_shared<soci::session>(soci::sqlite3, file());
    *sql << "BEGIN IMMEDIATE";
    return sql;
  }

  TempDir folder_;
  std::shared_ptr<void> hold_;
};

/// One process on a store and a database, and a client of all its routes.
class FrozenShop {
 public:
  FrozenShop(Dependency& store, Dependency& orders) {
    std::ofstream{folder_ / "secrets"} << secret << '\n';
    ::chmod((folder_ / "secrets").c_str(), 0600);
    std::ofstream{folder_ / "sales.json"}
        << R"([{"name": "tea", "stock": 5000, "type": "TEA", "digits": 6, "price": 500,)"
        << R"( "currency": "CNY"},)"
        << R"({"name": "cocoa", "stock": 500, "type": "COC", "digits": 6},)"
        << R"({"name": "mate", "stock": 500, "type": "MAT", "digits": 6}])";
    std::ofstream lines{folder_ / "keys"};
    for (int i = 0; i < 200; ++i) {
      auto made = server::make_shop_key(fmt::format("k{}", i),
                                        {server::Scope::operate, server::Scope::tools});
      lines << made.line << '\n';
      keys_.push_back(std::move(made.key));
    }
    lines.close();
    ::chmod((folder_ / "keys").c_str(), 0600);
    served_.emplace(
        folder_, 0,
        std::vector<std::string>{"--store", store.url(), "--orders", orders.url(), "--sales",
                                 (folder_ / "sales.json").string(), "--payments",
                                 "acme=" + (folder_ / "secrets").string(), "--room",
                                 "cocoa=100/100", "--shop-keys", (folder_ / "keys").string(),
                                 "--loops", "1", "--buyer-rate", "100000/10"});
  }
  bool begins() {
    if (!served_->begins()) return false;
    routes_.emplace(served_->port(), secret, keys_);
    return true;
  }
  Served& served() { return *served_; }
  AllRoutes& routes() { return *routes_; }

  Answer ready() const { return ask(served_->health_port(), "GET", "/readyz"); }
  /// Which alerts the metrics have.
  std::string alerts() const {
    const auto text = ask(served_->health_port(), "GET", "/metrics").body;
    constexpr std::string_view begins = "sluice_service_trouble{trouble=\"";
    std::string all;
    for (auto at = text.find(begins); at != text.npos; at = text.find(begins, at + 1)) {
      const auto name =
          text.substr(at + begins.size(), text.find('"', at + begins.size()) - at - begins.size());
      const auto end = text.find('\n', at);
      if (text[end - 1] == '1') all += (all.empty() ? "" : " ") + name;
    }
    return all;
  }
  int sold(std::string_view buyer) const { return routes_->order(buyer, "k").status; }

 private:
  static constexpr const char* secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  TempDir folder_;
  AllRoutes::Keys keys_;
  std::optional<Served> served_;
  std::optional<AllRoutes> routes_;
};

}  // namespace sluice::test
