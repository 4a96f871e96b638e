#include "proxy/flow/resolver.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <string>
#include <system_error>

#include "base/thread.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

/// So many names may be slow before others wait for them.
constexpr std::size_t most_threads = 32;
constexpr auto found_for = 1s;

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

struct Resolver::State {
  explicit State(Lookup how) : lookup(std::move(how)) {}

  const Lookup lookup;
  std::mutex mutex;
  std::map<net::Endpoint, std::vector<Answer>> asked;
  std::deque<net::Endpoint> waiting;  // of those: no thread has begun with them
  std::size_t threads = 0;
  bool is_ending = false;

  Found look_up(const net::Endpoint& endpoint) const {
    try {
      auto addresses = lookup(endpoint);
      if (!addresses.empty()) return addresses;
      return Unexpected{Error{Errc::connection, "there is no host '" + endpoint.host + "'"}};
    } catch (const Error& error) {
      return Unexpected{error};
    } catch (const std::exception& error) {
      return Unexpected{Error{Errc::connection, error.what()}};
    }
  }
  /// REQUIRES: mutex is held
  void tell(const net::Endpoint& endpoint, const Found& found) {
    const auto told = asked.extract(endpoint);
    for (const auto& answer : told.mapped())
      if (!is_ending) answer(found);
  }
};

Resolver::Resolver(Lookup lookup)
    : state_(std::make_shared<State>(lookup ? std::move(lookup) : Lookup{net::resolve})) {}

void Resolver::end() {
  const std::lock_guard lock{state_->mutex};
  state_->is_ending = true;
  state_->waiting.clear();
}

void Resolver::ask(const net::Endpoint& endpoint, Answer answer) {
  const std::lock_guard lock{state_->mutex};
  if (state_->is_ending) return;
  auto& answers = state_->asked[endpoint];
  answers.push_back(std::move(answer));
  if (answers.size() > 1) return;
  state_->waiting.push_back(endpoint);
  if (state_->threads == most_threads) return;
  try {
    start_thread([state = state_] { run(state); }).detach();
    ++state_->threads;
  } catch (const std::system_error& none) {  // the threads that there are come to it
    if (state_->threads != 0) return;
    state_->waiting.pop_back();
    state_->tell(endpoint, Unexpected{Error{Errc::connection, none.what()}});
  }
}

void Resolver::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock{state->mutex};
  while (!state->waiting.empty()) {
    const auto endpoint = std::move(state->waiting.front());
    state->waiting.pop_front();
    lock.unlock();
    const auto found = state->look_up(endpoint);
    lock.lock();
    state->tell(endpoint, found);
  }
  --state->threads;
}

KnownNames::KnownNames(Resolver& resolver, std::function<void()> wake)
    : resolver_(resolver), shared_(std::make_shared<Shared>()) {
  shared_->wake = std::move(wake);
}

std::optional<Resolver::Found> KnownNames::find(const net::Endpoint& endpoint) {
  if (auto known = known_addresses(endpoint); !known.empty()) return known;
  const auto now = system_clock().steady();
  {
    const std::lock_guard lock{shared_->mutex};
    std::erase_if(shared_->answers, [&](const auto& one) {
      return one.second.found && one.second.at + found_for <= now;
    });
    const auto [at, is_new] = shared_->answers.try_emplace(endpoint);
    if (!is_new) return at->second.found;
  }
  resolver_.ask(endpoint, [shared = shared_, endpoint](const Resolver::Found& found) {
    {
      const std::lock_guard lock{shared->mutex};
      shared->answers[endpoint] = {found, system_clock().steady()};
    }
    shared->wake();
  });
  return std::nullopt;
}

}  // namespace sluice::proxy::flow
