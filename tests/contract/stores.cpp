#include "contract/stores.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <thread>

#include "port/port_under_test.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"
#include "support/certificates.hpp"
#include "support/cluster_rig.hpp"
#include "support/free_port.hpp"
#include "support/sentinel_rig.hpp"

namespace sluice::test {
namespace {

RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

std::string secure_url() {
  static const Certificates files;
  static const auto port = free_port();
  static const RedisServer server{files.redis(port, "no")};
  return fmt::format("rediss://127.0.0.1:{}?tls_ca={}", port, files["ca.pem"]);
}

std::string watched_url() {
  static const SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  return rig.url();
}

std::string cluster_url() {
  static const ClusterRig rig{{.masters = 3, .replicas = 0, .config = {}}};
  return rig.url();
}

std::string proxied_url() {
  static ProxyUnderTest proxy{{shared_server().port()}, {"allow: [flushall]"}};
  return fmt::format("redis://127.0.0.1:{}", proxy.port());
}

std::string served_url() {
  static const PortUnderTest port;
  return port.url();
}

std::string kept_url() {
  static const TempDir folder;
  static const PortUnderTest port{
      {.threads = 2}, {.path = (folder / "data").string(), .fsync = engine::Fsync::everysec}};
  return port.url();
}

}  // namespace

std::string to_string(StoreKind kind) {
  switch (kind) {
    case StoreKind::embedded_memory: return "embedded_memory";
    case StoreKind::embedded_folder: return "embedded_folder";
    case StoreKind::redis: return "redis";
    case StoreKind::secure: return "secure";
    case StoreKind::sentinel: return "sentinel";
    case StoreKind::cluster: return "cluster";
    case StoreKind::proxied: return "proxied";
    case StoreKind::served: return "served";
    case StoreKind::kept: return "kept";
  }
  return "unknown";
}

std::string StoreContract::name(std::string_view what) {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  return "{" + std::string{test->test_suite_name()} + "." + test->name() + "}:" + std::string{what};
}

bool StoreContract::is_renewed(const std::string& key) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  for (auto before = std::numeric_limits<std::int64_t>::max();
       std::chrono::steady_clock::now() < patience;) {
    const auto left = store_->run({"PTTL", key}).get().as_integer();
    if (left > before) return true;
    before = left;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

void StoreContract::SetUp() {
  switch (GetParam()) {
    case StoreKind::embedded_memory: url_ = "embedded:"; break;
    case StoreKind::embedded_folder:
      folder_.emplace();
      url_ = "embedded:" + (*folder_ / "data").string();
      break;
    case StoreKind::redis: url_ = shared_server().url(); break;
    case StoreKind::secure: url_ = secure_url(); break;
    case StoreKind::sentinel: url_ = watched_url(); break;
    case StoreKind::cluster: url_ = cluster_url(); break;
    case StoreKind::proxied: url_ = proxied_url(); break;
    case StoreKind::served: url_ = served_url(); break;
    case StoreKind::kept: url_ = kept_url(); break;
  }
  store_ = open(url_);
  if (has_second()) {
    store_->run({"FLUSHALL"}).get();
    store_->run({"SCRIPT", "FLUSH"}).get();
  }
}

}  // namespace sluice::test
