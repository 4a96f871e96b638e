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

#include "sluice/open.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

enum class StoreKind {
  embedded_memory,
  embedded_folder,
  redis,
  proxied,  ///< a redis behind our own proxy: all keys have one home
};

std::string to_string(StoreKind kind);
inline void PrintTo(StoreKind kind, std::ostream* out) { *out << to_string(kind); }

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
                      sluice::test::StoreKind::proxied),                                        \
      [](const auto& kind) { return sluice::test::to_string(kind.param); })
