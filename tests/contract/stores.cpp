#include "contract/stores.hpp"

namespace sluice::test {
namespace {

RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

}  // namespace

std::string to_string(StoreKind kind) {
  switch (kind) {
    case StoreKind::embedded_memory: return "embedded_memory";
    case StoreKind::embedded_folder: return "embedded_folder";
    case StoreKind::redis: return "redis";
  }
  return "unknown";
}

std::string StoreContract::name(std::string_view what) {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  return "{" + std::string{test->test_suite_name()} + "." + test->name() + "}:" + std::string{what};
}

void StoreContract::SetUp() {
  switch (GetParam()) {
    case StoreKind::embedded_memory: url_ = "embedded:"; break;
    case StoreKind::embedded_folder:
      folder_.emplace();
      url_ = "embedded:" + (*folder_ / "data").string();
      break;
    case StoreKind::redis: url_ = shared_server().url(); break;
  }
  store_ = open(url_);
  if (GetParam() == StoreKind::redis) {
    store_->run({"FLUSHALL"}).get();
    store_->run({"SCRIPT", "FLUSH"}).get();
  }
}

}  // namespace sluice::test
