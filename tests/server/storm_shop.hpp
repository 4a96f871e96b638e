/// A shop of real processes that may all be killed: sluice-serve several times, a Redis that writes
/// each command to its disk, and PostgreSQL. Who has ended is started again, as systemd does it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/receiver.hpp"
#include "server/shop_keys.hpp"
#include "sluice/payment_provider.hpp"
#include "support/database_rig.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

inline constexpr const char* storm_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Threads: the one that made it, since its processes end with that; ports() may be asked by any.
class StormShop {
 public:
  StormShop(int sellers, std::int64_t stock) {
    orders_ = postgresql_->url(postgresql_->make_database());
    write_private("secrets", storm_secret);
    write_private("shop_keys", key_.line);
    std::ofstream{folder_ / "sales.json"} << fmt::format(
        R"([{{"name": "tea", "stock": {}, "type": "TEA", "digits": 7, "price": 500,)"
        R"( "currency": "CNY", "pay-within": "1s", "grace": "500ms", "unit-limit": 3, )"
        R"("largest-order": 3}}])",
        stock);
    for (int i = 0; i < sellers; ++i) {
      ports_.push_back(free_port());
      crew_.push_back(nullptr);
      begin(static_cast<std::size_t>(i));
    }
  }

  const std::vector<std::uint16_t>& ports() const noexcept { return ports_; }
  std::string store_url() const { return redis_.url(); }
  const std::string& orders_url() const noexcept { return orders_; }
  const std::string& shop_key() const noexcept { return key_.key; }
  /// Where refunds of payments go: of each third one the first question fails.
  const Receiver& provider() const noexcept { return provider_; }

  enum class Victim : std::uint8_t { seller, redis, postgresql, all };
  /// With SIGKILL. Servers are started again at once; sellers by look_after().
  void kill(Victim victim, std::mt19937& random) {
    const bool all = victim == Victim::all;
    for (std::size_t i = 0; all && i < crew_.size(); ++i) crew_[i]->kill();
    if (victim == Victim::seller) crew_[random() % crew_.size()]->kill();
    if (victim == Victim::redis || all) redis_.kill();
    if (victim == Victim::postgresql || all) postgresql_->kill();
    if (victim == Victim::redis || all) redis_.start();
    if (victim == Victim::postgresql || all) postgresql_->start();
  }

  /// Starts again who has ended, for whatever reason but a mistake of ours.
  void look_after() {
    for (std::size_t i = 0; i < crew_.size(); ++i) {
      if (crew_[i]->running()) continue;
      const int status = crew_[i]->wait();
      constexpr int killed = 128 + SIGKILL;
      constexpr int unavailable = 69;  // it began while its store or its database was dead
      EXPECT_TRUE(status == killed || status == unavailable)
          << "sluice-serve ended with " << status << ":\n"
          << output_of(i);
      begin(i);
    }
  }

  /// A process with the same database and another store: it may not sell one unit.
  void intrude() {
    Process intruder{options_of(free_port(), other_redis_.url()),
                     {.directory = folder_.path(), .output = folder_ / "intruder"}};
    const auto status = intruder.wait_for(std::chrono::seconds{20});
    constexpr int refused = 78;
    constexpr int unavailable = 69;  // the database was dead
    EXPECT_TRUE(status == refused || status == unavailable)
        << "an intruder ended with " << status.value_or(-1) << ":\n"
        << std::ifstream{folder_ / "intruder"}.rdbuf();
    refused_ += status == refused ? 1 : 0;
  }
  int refused() const noexcept { return refused_; }

  /// By the command line, beside the sellers. Its exit code.
  int archive() const {
    return Process{{built_path("sluice"), "--store", redis_.url(), "sale", "archive", "tea",
                    "--orders", orders_, "--file", (folder_ / "tea.csv").string()},
                   {.directory = folder_.path(), .output = folder_ / "archive"}}
        .wait();
  }

  std::string said_by_archive() const {
    std::ifstream file{folder_ / "archive"};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  void end() {
    for (auto& one : crew_) one->terminate();
    for (std::size_t i = 0; i < crew_.size(); ++i) EXPECT_EQ(crew_[i]->wait(), 0) << output_of(i);
  }

  /// The end of what a process has said; of lines that say the same the first.
  std::string output_of(std::size_t seller) const {
    std::ifstream file{output(seller)};
    std::string all;
    for (std::string line, before; std::getline(file, line); before = line)
      if (line != before) all += line + '\n';
    return all.substr(all.size() - std::min<std::size_t>(all.size(), 4000));
  }

 private:
  std::filesystem::path output(std::size_t seller) const {
    return folder_ / fmt::format("seller{}", seller);
  }
  void write_private(const char* name, std::string_view text) const {
    std::ofstream{folder_ / name} << text << '\n';
    ::chmod((folder_ / name).c_str(), 0600);
  }
  std::vector<std::string> options_of(std::uint16_t port, const std::string& store) const {
    return {built_path("sluice-serve"),
            "--listen",
            fmt::format("127.0.0.1:{}", port),
            "--health",
            "127.0.0.1:0",
            "--store",
            store,
            "--orders",
            orders_,
            "--sales",
            (folder_ / "sales.json").string(),
            "--payments",
            "acme=" + (folder_ / "secrets").string(),
            "--refunds",
            "acme=" + provider_.url(),
            "--allow-private-targets",
            "--shop-keys",
            (folder_ / "shop_keys").string(),
            "--believe-buyers",
            "--notice",
            "0s",
            "--claim-after",
            "1s",
            "--loops",
            "1"};
  }
  void begin(std::size_t seller) {
    crew_[seller] = std::make_unique<Process>(
        options_of(ports_[seller], redis_.url()),
        ProcessOptions{.directory = folder_.path(), .output = output(seller)});
  }

  TempDir folder_;
  const server::MadeShopKey key_ = server::make_shop_key("till", {server::Scope::orders});
  std::set<std::string> asked_;  // of the provider's thread
  Receiver provider_{[this](const Receiver::Got& got) {
    return asked_.insert(got.key).second && asked_.size() % 3 == 0 ? 500 : 204;
  }};
  RedisServer other_redis_;
  int refused_ = 0;
  RedisServer redis_{{"appendonly yes", "appendfsync always"}};
  std::unique_ptr<DatabaseServer> postgresql_ = start_postgresql({"fsync=off"});
  std::string orders_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::unique_ptr<Process>> crew_;
};

}  // namespace sluice::test
