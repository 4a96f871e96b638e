#include "proxy/process/side_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "net/socket.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

using Outcome = net::Transfer::Outcome;

/// How long a client may take to close after its last answer. Closing first, with bytes of its
/// unread, could cost it the answer.
constexpr std::chrono::seconds farewell{1};
constexpr std::chrono::seconds between_looks{1};  // for idle clients

struct Client {
  enum class State : std::uint8_t { talking, last_words, leaving };

  net::Socket socket;
  const Door* door;
  std::unique_ptr<Session> session;
  SteadyTime active;
  State state = State::talking;
  std::string input, output;

  bool is_done(SteadyTime now) const {
    return now - active >= (state == State::leaving ? farewell : door->idle);
  }
  short events() const noexcept { return output.empty() ? POLLIN : POLLOUT; }
};

/// False: the connection is of no more use.
bool write_output(Client& client, SteadyTime now) {
  while (!client.output.empty()) {
    const auto sent = client.socket.write_some(client.output);
    if (sent.outcome == Outcome::would_block) return true;
    if (sent.outcome != Outcome::moved) return false;
    client.output.erase(0, sent.bytes);
    client.active = now;
  }
  if (client.state == Client::State::last_words) {
    ::shutdown(client.socket.descriptor(), SHUT_WR);
    client.state = Client::State::leaving;
  }
  return true;
}

void heed(Client& client, Session::Next next) {
  if (next == Session::Next::close) client.state = Client::State::last_words;
}

/// As long as the client takes what is said, and something complete is left of what it said.
bool converse(Client& client, SteadyTime now) {
  while (client.state == Client::State::talking && client.output.empty() && !client.input.empty()) {
    const std::size_t before = client.input.size();
    heed(client, client.session->talk(client.input, client.output));
    const bool usable =
        client.input.size() <= client.door->input_limit && write_output(client, now);
    if (!usable) return false;
    if (client.input.size() == before) break;
  }
  return true;
}

bool read_input(Client& client, SteadyTime now) {
  std::array<char, 16384> bytes;
  const auto got = client.socket.read_some(bytes);
  if (got.outcome == Outcome::would_block) return true;
  if (got.outcome != Outcome::moved) return false;
  if (client.state != Client::State::talking)
    return true;  // what follows the last words is not heard
  client.active = now;
  client.input.append(bytes.data(), got.bytes);
  return converse(client, now);
}

}  // namespace

class SideServer::Loop {
 public:
  Loop(std::vector<Door> doors, Clock& clock)
      : doors_(std::move(doors)), clock_(clock), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
    thread_ = std::thread{[this] { run(); }};
  }
  ~Loop() {
    stopping_.store(true);
    wake();
    thread_.join();
    if (timer_ != 0) clock_.cancel(timer_);  // its callback uses wake_
    ::close(wake_);
    if (handed_on_.load())
      for (Door& door : doors_) door.listening.hand_on();
  }

  void hand_on() noexcept {
    handed_on_.store(true);
    wake();
  }

 private:
  void wake() noexcept { static_cast<void>(::eventfd_write(wake_, 1)); }

  void run() {
    while (!stopping_.load()) {
      std::vector<pollfd> waits{{wake_, POLLIN, 0}};
      const short accepting = doors_open_ && !handed_on_.load() ? POLLIN : 0;
      for (const Door& door : doors_) waits.push_back({door.listening.descriptor(), accepting, 0});
      for (const auto& client : clients_)
        waits.push_back({client->socket.descriptor(), client->events(), 0});
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // EINTR; ENOMEM passes
      eventfd_t ignored = 0;
      static_cast<void>(::eventfd_read(wake_, &ignored));
      serve(waits);
    }
  }

  void serve(const std::vector<pollfd>& waits) {
    const auto now = clock_.steady();
    const std::size_t first = 1 + doors_.size();
    for (std::size_t i = first; i < waits.size(); ++i)
      if (waits[i].revents != 0 && !serve(*clients_[i - first], now)) clients_[i - first].reset();
    std::erase_if(clients_, [&](const auto& client) { return !client || client->is_done(now); });
    if (!timer_set_.load()) doors_open_ = true;
    for (std::size_t i = 0; i < doors_.size(); ++i)
      if (waits[1 + i].revents != 0) accept(doors_[i], now);
    if ((!clients_.empty() || !doors_open_) && !timer_set_.exchange(true))
      timer_ = clock_.after(between_looks, [this] {
        timer_set_.store(false);
        wake();
      });
  }

  /// A session that throws costs its client the connection, nobody else anything.
  static bool serve(Client& client, SteadyTime now) {
    try {
      return client.output.empty() ? read_input(client, now)
                                   : write_output(client, now) && converse(client, now);
    } catch (const std::exception& failure) {
      log(LogLevel::error,
          fmt::format("a request for statistics or administration failed: {}", failure.what()));
      return false;
    }
  }

  void accept(const Door& door, SteadyTime now) {
    const int descriptor =
        ::accept4(door.listening.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor <
        0) {  // gone again; or no descriptor is left, and asking at once would not help
      doors_open_ = errno != EMFILE && errno != ENFILE;
      return;
    }
    if (clients_.size() >= most_clients)
      clients_.erase(std::ranges::min_element(clients_, {},
                                              [](const auto& client) { return client->active; }));
    auto& client = *clients_.emplace_back(std::make_unique<Client>(
        net::Socket{descriptor}, &door, door.open_session(), now, Client::State::talking, "", ""));
    const bool stays = greet(client, now);
    if (!stays) clients_.pop_back();
  }

  static bool greet(Client& client, SteadyTime now) {
    try {
      heed(client, client.session->greet(client.output));
      return write_output(client, now);
    } catch (const std::exception& failure) {
      log(LogLevel::error, fmt::format("the statistics cannot be told: {}", failure.what()));
      return false;
    }
  }

  std::vector<Door> doors_;
  Clock& clock_;
  const int wake_;
  std::vector<std::unique_ptr<Client>> clients_;
  bool doors_open_ = true;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> handed_on_{false};
  std::atomic<bool> timer_set_{false};
  Clock::TimerId timer_ = 0;
  std::thread thread_;
};

SideServer::SideServer(std::vector<Door> doors, Clock& clock)
    : loop_(std::make_unique<Loop>(std::move(doors), clock)) {}
SideServer::~SideServer() = default;
void SideServer::hand_on() noexcept { loop_->hand_on(); }

}  // namespace sluice::proxy
