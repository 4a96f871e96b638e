#include "proxy/flow/acceptor.hpp"

#include <fmt/format.h>

#include <system_error>

#include "proxy/flow/pool.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;
using Outcome = net::Listener::Outcome;

constexpr int clients_a_turn = 64;  // so that those who are here already are served as well
constexpr auto rest_time = 100ms;   // without descriptors there is no use in asking at once again

}  // namespace

Acceptor::Acceptor(Pool& pool, net::Listener listener)
    : pool_(pool), loop_(pool.loop()), listener_(std::move(listener)) {
  loop_.add_listener(listener_.descriptor(), *this);
}

Acceptor::~Acceptor() { close(); }

void Acceptor::close() noexcept {
  if (listener_.descriptor() < 0) return;
  loop_.cancel(resting_);
  loop_.remove(listener_.descriptor());
  listener_ = {};
}

void Acceptor::take_waiting() {
  for (;;) {
    auto accepted = listener_.accept();
    if (accepted.outcome != Outcome::accepted) return;
    pool_.accept(std::move(accepted.socket));
  }
}

void Acceptor::ready(Readiness) {
  if (listener_.descriptor() < 0) return;
  for (int i = 0; i < clients_a_turn; ++i) {
    auto accepted = listener_.accept();
    switch (accepted.outcome) {
      case Outcome::accepted: pool_.accept(std::move(accepted.socket)); break;
      case Outcome::none: return;
      case Outcome::out_of_descriptors:
      case Outcome::failed:
        log(LogLevel::error, fmt::format("pool '{}': accept failed: {}", pool_.settings().name,
                                         std::generic_category().message(accepted.error)));
        return rest();
    }
  }
}

void Acceptor::rest() {
  loop_.remove(listener_.descriptor());
  resting_ = loop_.after(rest_time, [this] { loop_.add_listener(listener_.descriptor(), *this); });
}

}  // namespace sluice::proxy
