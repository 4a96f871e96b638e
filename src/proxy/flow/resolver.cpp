#include "proxy/flow/resolver.hpp"

#include <algorithm>

#include "base/thread.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

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
  if (!endpoint.is_unix() && !net::is_numeric(endpoint.host)) return {};
  return addresses_of(endpoint);
}

bool Addresses::contains(const net::Address& address) const noexcept {
  return std::ranges::find(all_, address) != all_.end();
}

void Addresses::skip(const net::Address& address) noexcept {
  if (!all_.empty() && current() == address) place_ = (place_ + 1) % all_.size();
}

void Addresses::take(std::vector<net::Address> all) {
  const auto before = empty() ? net::Address{} : current();
  all_ = std::move(all);
  const auto found = std::ranges::find(all_, before);
  place_ = found == all_.end() ? 0 : static_cast<std::size_t>(found - all_.begin());
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
  if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
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

}  // namespace sluice::proxy::flow
