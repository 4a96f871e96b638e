/// A server that speaks TLS and does what a redis-server never does: it asks for new keys in the
/// middle of everything, and tells by which name it was asked for. One connection at a time; it
/// knows SET and GET.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/certificates.hpp"

namespace sluice::test {

class TlsPeer {
 public:
  explicit TlsPeer(const Certificates& files);
  ~TlsPeer();
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// The server names (SNI) that clients have sent; "-" of those that sent none.
  std::vector<std::string> names() const;
  /// How often the client has followed a change of keys.
  int key_updates() const noexcept { return key_updates_; }

 private:
  void run();
  void serve(int descriptor);

  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
  int listener_ = -1;
  std::atomic<bool> over_{false};
  std::uint16_t port_ = 0;
  std::atomic<int> key_updates_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
  int served_ = -1;  // the connection of now
  std::map<std::string, std::string, std::less<>> values_;
  std::thread thread_;
};

}  // namespace sluice::test
