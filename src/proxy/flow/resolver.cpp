#include "proxy/flow/resolver.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

bool is_numeric(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::vector<net::Address> addresses_of(const net::Endpoint& endpoint) {
  try {
    return net::resolve(endpoint);
  } catch (const Error& error) {
    log(LogLevel::warning, error.message());
    return {};
  }
}

}  // namespace

std::vector<net::Address> known_addresses(const net::Endpoint& endpoint) {
  if (!endpoint.is_unix() && !is_numeric(endpoint.host)) return {};
  return addresses_of(endpoint);
}

Resolver::Resolver(Lookup lookup) : lookup_(lookup ? std::move(lookup) : addresses_of) {}

Resolver::~Resolver() { end(); }

void Resolver::end() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Resolver::ask(net::Endpoint endpoint, Answer answer) {
  const std::lock_guard lock{mutex_};
  if (ending_) return;
  questions_.push_back({std::move(endpoint), std::move(answer)});
  if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
  asked_.notify_one();
}

void Resolver::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    asked_.wait(lock, [this] { return ending_ || !questions_.empty(); });
    if (ending_) return;
    const auto question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    question.answer(lookup_(question.endpoint));
    lock.lock();
  }
}

}  // namespace sluice::proxy
