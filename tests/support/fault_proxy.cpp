#include "support/fault_proxy.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace sluice::test {
namespace {

using Kind = Passing::Kind;
using Way = ProxiedLine::Way;

constexpr std::chrono::seconds patience{10};

bool same_command(std::string_view a, std::string_view b) {
  const auto upper = [](unsigned char c) { return std::toupper(c); };
  return std::ranges::equal(a, b, {}, upper, upper);
}

bool runs(const std::vector<std::string>& words, const Script& script) {
  return words.size() > 1 && ((same_command(words[0], "EVALSHA") && words[1] == script.sha1) ||
                              (same_command(words[0], "EVAL") && words[1] == script.text));
}

bool is_noscript(const Value& value) {
  return value.is_error() && value.as_text().starts_with("NOSCRIPT");
}

void tune(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket.number(), F_SETFL, O_NONBLOCK);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void check(int result, const char* call) {
  if (result < 0) throw std::system_error{errno, std::generic_category(), call};
}

/// Bound to `port`, which several sockets of this process may be; 0: one that is free.
Descriptor bound(std::uint16_t port) {
  Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  const int on = 1;
  check(::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setsockopt");
  const auto address = loopback(port);
  check(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        "bind");
  return socket;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check(::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size),
        "getsockname");
  return ntohs(address.sin_port);
}

}  // namespace

Match any_request() {
  return [](const Passing& passing) { return passing.kind == Kind::request; };
}

Match any_reply() {
  return [](const Passing& passing) { return passing.kind == Kind::reply; };
}

Match request_of(std::string_view command) {
  return [command = std::string{command}](const Passing& passing) {
    return passing.kind == Kind::request && same_command(passing.words.at(0), command);
  };
}

Match request_of(const Script& script) {
  return [&script](const Passing& passing) {
    return passing.kind == Kind::request && runs(passing.words, script);
  };
}

Match reply_to(std::string_view command) {
  return [command = std::string{command}](const Passing& passing) {
    return passing.kind == Kind::reply && !passing.words.empty() &&
           same_command(passing.words[0], command);
  };
}

Match reply_to(const Script& script) {
  return [&script](const Passing& passing) {
    return passing.kind == Kind::reply && runs(passing.words, script) &&
           !is_noscript(passing.value);
  };
}

Match message_on(std::string_view channel) {
  return [channel = std::string{channel}](const Passing& passing) {
    return passing.kind == Kind::message && !passing.words.empty() && passing.words[0] == channel;
  };
}

Match on_connection(std::size_t number, Match match) {
  return [number, match = std::move(match)](const Passing& passing) {
    return passing.connection == number && match(passing);
  };
}

/// A line and its two sockets.
struct FaultProxy::Connection {
  std::size_t number;
  ProxiedLine line;
  Descriptor client;
  Descriptor server;
  bool server_told = false;  // that no more requests come

  Descriptor& socket(Way way) { return way == Way::to_server ? server : client; }
  void read(Way from);
  void flush(Way way);
  /// Writes what there is to write, and closes what has ended.
  void settle();
  bool is_over() const { return !client.is_open() && !server.is_open(); }
};

void FaultProxy::Connection::read(Way from) {
  Descriptor& source = socket(from);
  if (!source.is_open()) return;
  std::array<char, 65536> bytes;
  const auto got = ::recv(source.number(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::string_view taken{bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  if (from == Way::to_client) return taken.empty() ? line.client_ended() : line.from_client(taken);
  if (!taken.empty()) return line.from_server(taken);
  line.server_ended();
  source.close();
}

void FaultProxy::Connection::flush(Way way) {
  std::string& out = line.out(way);
  Descriptor& target = socket(way);
  while (!out.empty()) {
    const auto sent = target.is_open()
                          ? ::send(target.number(), out.data(), out.size(), MSG_NOSIGNAL)
                          : static_cast<ssize_t>(out.size());
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return out.clear();  // the peer is gone: reading will tell
    out.erase(0, static_cast<std::size_t>(sent));
  }
}

void FaultProxy::Connection::settle() {
  flush(Way::to_client);
  flush(Way::to_server);
  const bool all_said = line.out(Way::to_client).empty();
  if (all_said && (line.client_gone() || line.ends(Way::to_client))) client.close();
  // The server takes what was sent to it and closes its side then; to close ours could lose it.
  const bool all_asked = line.ends(Way::to_server) && line.out(Way::to_server).empty();
  if (all_asked && server.is_open() && !std::exchange(server_told, true))
    ::shutdown(server.number(), SHUT_WR);
}

/// What poll() watches: a socket, and for which connection and side of it.
struct FaultProxy::Watched {
  pollfd poll;
  Connection* connection;
  Way side;
};

FaultProxy::FaultProxy(std::uint16_t server_port)
    : server_port_(server_port),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      reservation_(bound(0)) {
  port_ = port_of(reservation_);
  listen();
  thread_ = std::thread{[this] { run(); }};
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  wake();
  thread_.join();
}

void FaultProxy::listen() {
  listener_ = bound(port_);
  check(::listen(listener_.number(), SOMAXCONN), "listen");
  ::fcntl(listener_.number(), F_SETFL, O_NONBLOCK);
}

void FaultProxy::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
}

FaultProxy::RuleId FaultProxy::on(Match match, Deed deed) {
  const std::lock_guard lock{mutex_};
  rules_.push_back({std::move(match), deed});
  return forgotten_ + rules_.size() - 1;
}

void FaultProxy::forget_rules() {
  const std::lock_guard lock{mutex_};
  forgotten_ += rules_.size();
  rules_.clear();
}

std::size_t FaultProxy::hits(RuleId rule) const {
  const std::lock_guard lock{mutex_};
  return rule < forgotten_ ? 0 : rules_.at(rule - forgotten_).hits;
}

bool FaultProxy::await_hits(RuleId rule, std::size_t many) const {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, patience, [&] {
    return rule >= forgotten_ && rules_.at(rule - forgotten_).hits >= many;
  });
}

bool FaultProxy::await_stranded(std::size_t many) const {
  const auto is_stranded = [](const auto& connection) { return connection->line.stranded(); };
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, patience, [&] {
    return static_cast<std::size_t>(std::ranges::count_if(connections_, is_stranded)) >= many;
  });
}

Fate FaultProxy::judge(const Passing& passing) {
  for (Rule& rule : rules_) {
    if (!rule.match(passing)) continue;
    if (rule.matched++ < rule.deed.skip || rule.hits >= rule.deed.times) continue;
    ++rule.hits;
    changed_.notify_all();
    if (rule.deed.fault != LineFault::none)
      return {rule.deed.fault, rule.deed.bytes, rule.deed.error};
  }
  return {};
}

void FaultProxy::let_go() {
  std::unique_lock lock{mutex_};
  std::vector<std::size_t> late;
  for (const auto& connection : connections_) {
    if (connection->line.stranded()) late.push_back(connection->number);
    connection->line.let_go();
  }
  wake();
  const bool taken = changed_.wait_for(lock, patience, [&] {
    return std::ranges::none_of(connections_, [&](const auto& connection) {
      return std::ranges::find(late, connection->number) != late.end();
    });
  });
  if (!taken) throw std::runtime_error{"the server does not take the requests that were held"};
}

void FaultProxy::cut() {
  const std::lock_guard lock{mutex_};
  for (const auto& connection : connections_) connection->line.cut();
  wake();
}

void FaultProxy::turn_to(std::uint16_t server_port) {
  const std::lock_guard lock{mutex_};
  server_port_ = server_port;
  for (const auto& connection : connections_) connection->line.cut();
  wake();
}

void FaultProxy::cut_next_at(Way way, std::uint64_t byte) {
  const std::lock_guard lock{mutex_};
  cuts_.emplace_back(way, byte);
}

void FaultProxy::set_door(Door door) {
  const std::lock_guard lock{mutex_};
  door_ = door;
  if (door == Door::closed) {
    ::shutdown(listener_.number(), SHUT_RD);  // at once: poll() in the thread keeps a closed one
    listener_.close();
  } else if (!listener_.is_open()) {
    listen();
  }
  wake();
}

std::size_t FaultProxy::connections() const {
  const std::lock_guard lock{mutex_};
  return connections_.size();
}

void FaultProxy::accept_one() {
  const int accepted = ::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return;
  auto connection = std::make_unique<Connection>(
      Connection{.number = accepted_,
                 .line = {accepted_++, [this](const Passing& passing) { return judge(passing); }},
                 .client = {accepted, "accept4"},
                 .server = {::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"}});
  const auto address = loopback(server_port_);
  const int connected = ::connect(connection->server.number(),
                                  reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected < 0) return;  // no server: the client sees its connection closed
  tune(connection->client);
  tune(connection->server);
  for (const auto& [way, byte] : cuts_) connection->line.cut_at(way, byte);
  connections_.push_back(std::move(connection));
}

std::vector<FaultProxy::Watched> FaultProxy::watched() const {
  std::vector<Watched> all{{{wake_.number(), POLLIN, 0}, nullptr, {}}};
  if (door_ == Door::open) all.push_back({{listener_.number(), POLLIN, 0}, nullptr, {}});
  for (const auto& connection : connections_) {
    for (const Way side : {Way::to_client, Way::to_server}) {
      const auto& socket = connection->socket(side);
      if (!socket.is_open()) continue;
      const bool writes = !connection->line.out(side).empty();
      const auto events = static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN);
      all.push_back({{socket.number(), events, 0}, connection.get(), side});
    }
  }
  return all;
}

void FaultProxy::run() {
  std::unique_lock lock{mutex_};
  while (!over_) {
    const auto all = watched();
    std::vector<pollfd> polls;
    for (const auto& one : all) polls.push_back(one.poll);
    lock.unlock();
    ::poll(polls.data(), polls.size(), -1);
    lock.lock();
    std::uint64_t woken = 0;
    [[maybe_unused]] const auto read = ::read(wake_.number(), &woken, sizeof woken);
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (polls[i].revents == 0) continue;
      if (all[i].connection)
        all[i].connection->read(all[i].side);
      else if (door_ == Door::open)
        accept_one();
    }
    for (const auto& connection : connections_) connection->settle();
    std::erase_if(connections_, [](const auto& connection) { return connection->is_over(); });
    changed_.notify_all();
  }
}

}  // namespace sluice::test
