#include "proxy/process/management_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "base/descriptor.hpp"
#include "base/thread.hpp"
#include "net/socket.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::process {
namespace {

using Outcome = net::Transfer::Outcome;

/// How long a client may take to close after its last answer: were the server to close first, with
/// input unread, the client could lose the answer.
constexpr std::chrono::seconds farewell{1};
constexpr std::chrono::seconds between_looks{1};  // for idle clients

struct Peer {
  enum class State : std::uint8_t { talking, closing, leaving };

  net::Socket socket;
  const Service* service;
  std::unique_ptr<Conversation> session;
  SteadyTime active;
  State state = State::talking;
  std::string input, output;

  bool is_done(SteadyTime now) const {
    return now - active >= (state == State::leaving ? farewell : service->idle);
  }
  short events() const noexcept { return output.empty() ? POLLIN : POLLOUT; }
};

/// False: close the connection.
bool write_output(Peer& client, SteadyTime now) {
  while (!client.output.empty()) {
    const auto sent = client.socket.write_some(client.output);
    if (sent.outcome == Outcome::would_block) return true;
    if (sent.outcome != Outcome::moved) return false;
    client.output.erase(0, sent.bytes);
    client.active = now;
  }
  if (client.state == Peer::State::closing) {
    ::shutdown(client.socket.descriptor(), SHUT_WR);
    client.state = Peer::State::leaving;
  }
  return true;
}

void apply(Peer& client, Conversation::Next next) {
  if (next == Conversation::Next::close) client.state = Peer::State::closing;
}

/// Goes on while the client takes its answers and whole requests are left. False: close.
bool converse(Peer& client, SteadyTime now) {
  while (client.state == Peer::State::talking && client.output.empty() && !client.input.empty()) {
    const std::size_t before = client.input.size();
    apply(client, client.session->talk(client.input, client.output));
    const bool usable =
        client.input.size() <= client.service->input_limit && write_output(client, now);
    if (!usable) return false;
    if (client.input.size() == before) break;
  }
  return true;
}

bool read_input(Peer& client, SteadyTime now) {
  std::array<char, 16384> bytes;
  const auto got = client.socket.read_some(bytes);
  if (got.outcome == Outcome::would_block) return true;
  if (got.outcome != Outcome::moved) return false;
  if (client.state != Peer::State::talking) return true;  // after the last answer nothing is read
  client.active = now;
  client.input.append(bytes.data(), got.bytes);
  return converse(client, now);
}

}  // namespace

class ManagementServer::Loop {
 public:
  Loop(std::vector<Service> services, Clock& clock)
      : services_(std::move(services)),
        clock_(clock),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {
    thread_ = start_thread([this] { run(); });
  }
  ~Loop() {
    stopping_.store(true);
    wake();
    thread_.join();
    if (timer_ != 0) clock_.cancel(timer_);  // its callback uses wake_
    if (handed_on_.load())
      for (Service& service : services_) service.listening.hand_on();
  }

  void hand_on() noexcept {
    handed_on_.store(true);
    wake();
  }

 private:
  void wake() noexcept { static_cast<void>(::eventfd_write(wake_.number(), 1)); }

  void run() {
    while (!stopping_.load()) {
      std::vector<pollfd> waits{{wake_.number(), POLLIN, 0}};
      const short accepting = accepting_ && !handed_on_.load() ? POLLIN : 0;
      for (const Service& service : services_)
        waits.push_back({service.listening.descriptor(), accepting, 0});
      for (const auto& client : clients_)
        waits.push_back({client->socket.descriptor(), client->events(), 0});
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // EINTR; ENOMEM passes
      eventfd_t ignored = 0;
      static_cast<void>(::eventfd_read(wake_.number(), &ignored));
      serve(waits);
    }
  }

  void serve(const std::vector<pollfd>& waits) {
    const auto now = clock_.steady();
    const std::size_t first = 1 + services_.size();
    for (std::size_t i = first; i < waits.size(); ++i)
      if (waits[i].revents != 0 && !guarded([&] { return serve(*clients_[i - first], now); }))
        clients_[i - first].reset();
    std::erase_if(clients_, [&](const auto& client) { return !client || client->is_done(now); });
    if (!timer_set_.load()) accepting_ = true;
    for (std::size_t i = 0; i < services_.size(); ++i)
      if (waits[1 + i].revents != 0) accept(services_[i], now);
    if ((!clients_.empty() || !accepting_) && !timer_set_.exchange(true))
      timer_ = clock_.after(between_looks, [this] {
        timer_set_.store(false);
        wake();
      });
  }

  /// A conversation that throws costs its own client the connection.
  static bool guarded(const auto& serve) {
    try {
      return serve();
    } catch (const std::exception& failure) {
      log(LogLevel::error,
          fmt::format("a request for statistics or administration failed: {}", failure.what()));
      return false;
    }
  }

  static bool serve(Peer& client, SteadyTime now) {
    return client.output.empty() ? read_input(client, now)
                                 : write_output(client, now) && converse(client, now);
  }

  void accept(const Service& service, SteadyTime now) {
    const int descriptor =
        ::accept4(service.listening.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor <
        0) {  // gone again; or no descriptor is left, and asking at once would not help
      accepting_ = errno != EMFILE && errno != ENFILE;
      return;
    }
    if (clients_.size() >= most_clients)
      clients_.erase(std::ranges::min_element(clients_, {},
                                              [](const auto& client) { return client->active; }));
    auto& client = *clients_.emplace_back(std::make_unique<Peer>(net::Socket{descriptor}, &service,
                                                                 service.open_conversation(), now,
                                                                 Peer::State::talking, "", ""));
    const bool stays = guarded([&] {
      apply(client, client.session->greet(client.output));
      return write_output(client, now);
    });
    if (!stays) clients_.pop_back();
  }

  std::vector<Service> services_;
  Clock& clock_;
  const Descriptor wake_;
  std::vector<std::unique_ptr<Peer>> clients_;
  bool accepting_ = true;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> handed_on_{false};
  std::atomic<bool> timer_set_{false};
  Clock::TimerId timer_ = 0;
  std::thread thread_;
};

ManagementServer::ManagementServer(std::vector<Service> services, Clock& clock)
    : loop_(std::make_unique<Loop>(std::move(services), clock)) {}
ManagementServer::~ManagementServer() = default;
void ManagementServer::hand_on() noexcept { loop_->hand_on(); }

}  // namespace sluice::proxy::process
