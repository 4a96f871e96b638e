/// Every kind of Store, for tests of what they all promise.
///
///     class MutexContract : public test::StoreContract {};
///     SLUICE_EVERY_STORE(MutexContract);
///     TEST_P(MutexContract, IsExclusive) { Mutex mutex{store(), name("lock")}; ... }
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "sluice/error.hpp"
#include "sluice/open.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

enum class StoreKind {
  embedded_memory,
  embedded_folder,
  redis,
  secure,    ///< a redis behind TLS
  sentinel,  ///< a redis that a Sentinel watches
  cluster,   ///< three masters of a Redis Cluster
  proxied,   ///< a redis behind our own proxy: all keys have one home
  served,    ///< our own engine at a port, in memory
  kept,      ///< the same, with two threads and a folder
};

std::string to_string(StoreKind kind);
inline void PrintTo(StoreKind kind, std::ostream* out) { *out << to_string(kind); }

/// A brief lease may be over before the reply is here, where the machine is slow: then once more.
template <class Acquire>
auto once_in_time(Acquire acquire) {
  for (int left = 50;; --left) try {
      return acquire().get();
    } catch (const Error&) {
      if (left == 0) throw;
    }
}

/// Gives a test a fresh Store of the kind that GetParam() names. The redis-server and the proxy
/// are started once a program; the server is emptied for each test.
class StoreContract : public testing::TestWithParam<StoreKind> {
 public:
  Store& store() noexcept { return *store_; }
  const std::string& url() const noexcept { return url_; }

  /// Another Store of the same data, as another process has it. Only where has_second(): an
  /// embedded Store is alone.
  std::unique_ptr<Store> second() const { return open(url_); }
  static bool has_second() { return GetParam() >= StoreKind::redis; }

  /// Until a renewal has come to the store: the key has longer than before. False: none comes.
  bool is_renewed(const std::string& key);

  /// A key that no other test uses, {tagged} so that keys made from it belong together.
  static std::string name(std::string_view what);

 protected:
  void SetUp() override;
  void TearDown() override { store_.reset(); }

 private:
  std::optional<TempDir> folder_;
  std::string url_;
  std::unique_ptr<Store> store_;
};

}  // namespace sluice::test

/// Runs a fixture that derives from StoreContract on every kind of Store.
#define SLUICE_EVERY_STORE(fixture)                                                             \
  INSTANTIATE_TEST_SUITE_P(                                                                     \
      EveryStore, fixture,                                                                      \
      testing::Values(sluice::test::StoreKind::embedded_memory,                                 \
                      sluice::test::StoreKind::embedded_folder, sluice::test::StoreKind::redis, \
                      sluice::test::StoreKind::proxied, sluice::test::StoreKind::served,        \
                      sluice::test::StoreKind::kept),                                           \
      [](const auto& kind) { return sluice::test::to_string(kind.param); })

/// Over TLS, too, and by Sentinels: for what the Store itself promises. What stands on it sees no
/// difference.
#define SLUICE_DISTANT_STORE(fixture)                                                              \
  SLUICE_WATCHED_STORE(fixture);                                                                   \
  SLUICE_SHARDED_STORE(fixture);                                                                   \
  INSTANTIATE_TEST_SUITE_P(SecureStore, fixture, testing::Values(sluice::test::StoreKind::secure), \
                           [](const auto& kind) { return sluice::test::to_string(kind.param); })

/// By Sentinels.
#define SLUICE_WATCHED_STORE(fixture)                                          \
  INSTANTIATE_TEST_SUITE_P(WatchedStore, fixture,                              \
                           testing::Values(sluice::test::StoreKind::sentinel), \
                           [](const auto& kind) { return sluice::test::to_string(kind.param); })

/// On several servers, by slots.
#define SLUICE_SHARDED_STORE(fixture)                                         \
  INSTANTIATE_TEST_SUITE_P(ShardedStore, fixture,                             \
                           testing::Values(sluice::test::StoreKind::cluster), \
                           [](const auto& kind) { return sluice::test::to_string(kind.param); })
