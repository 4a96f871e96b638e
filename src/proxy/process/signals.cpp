#include "proxy/process/signals.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

namespace sluice::proxy {
namespace {

constexpr SignalOrder orders[] = {
    {SIGINT, "SIGINT", Order::quit, ", exiting"},
    {SIGTERM, "SIGTERM", Order::drain, ", draining"},
    {SIGHUP, "SIGHUP", Order::reopen, ", reopening log file"},
    {SIGTTIN, "SIGTTIN", Order::louder, ", up logging level"},
    {SIGTTOU, "SIGTTOU", Order::quieter, ", down logging level"},
    {SIGUSR1, "SIGUSR1", Order::reload, ", reloading configuration"},
    {SIGUSR2, "SIGUSR2", Order::nothing, ""},
};

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const auto& order : orders) sigaddset(&set, order.number);
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = watched();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  std::signal(SIGPIPE, SIG_IGN);
  // A disposition of "ignore", which -d leaves for HUP, would drop the signal before the descriptor tells it.
  std::signal(SIGHUP, SIG_DFL);
  descriptor_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw std::system_error{errno, std::generic_category(), "signalfd"};
}

Signals::~Signals() {
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<SignalOrder> Signals::next() {
  signalfd_siginfo came{};
  if (::read(descriptor_, &came, sizeof came) != static_cast<ssize_t>(sizeof came))
    return std::nullopt;
  const auto* const found =
      std::ranges::find(orders, static_cast<int>(came.ssi_signo), &SignalOrder::number);
  return found == std::end(orders) ? std::nullopt : std::optional{*found};
}

std::string to_string(const SignalOrder& order) {
  return fmt::format("signal {} ({}) received{}", order.number, order.name, order.action);
}

}  // namespace sluice::proxy
