#include "proxy/flow/handover.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/integer.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/flow/pool_clients.hpp"
#include "resp/request_parser.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr int messages_a_turn = 64;
// Names and the like may take as much again.
constexpr std::size_t largest_message = 2 * ClientHandover::most_unread;

/// The fields of a message, each under its name.
template <class Client, class Visit>
void for_each_field(Client& client, Visit visit) {
  visit("pool", client.pool);
  visit("listen", client.listen);
  visit("redis", client.redis);
  visit("id", client.id);
  visit("resp", client.resp);
  visit("db", client.db);
  visit("wants_login", client.wants_login);
  visit("logged_in", client.logged_in);
  visit("muted", client.muted);
  visit("age", client.age);
  visit("idle", client.idle);
  visit("told", client.told);
  visit("unread", client.unread);
}

std::string written(const std::string& text) { return text; }
std::string written(std::uint64_t number) { return std::to_string(number); }
std::string written(int number) { return std::to_string(number); }
std::string written(bool is) { return is ? "1" : "0"; }
std::string written(std::uint8_t number) { return std::to_string(number); }
std::string written(const std::optional<int>& number) {
  return number ? std::to_string(*number) : std::string{};
}

void read_into(std::string& field, std::string_view text) { field = text; }
void read_into(bool& field, std::string_view text) { field = text == "1"; }
void read_into(std::optional<int>& field, std::string_view text) {
  field = parse_integer<int>(text);
}
template <class Number>
void read_into(Number& field, std::string_view text) {
  field = parse_integer<Number>(text).value_or(field);
}

enum class Arrival : std::uint8_t { whole, none, gone };

/// A message, and the descriptor beside it.
Arrival receive_from(int channel, std::string& bytes, Descriptor* beside) {
  bytes.resize(largest_message);
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {  // ECONNRESET comes once, before what the peer had sent when it ended
    got = ::recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return errno == EAGAIN ? Arrival::none : Arrival::gone;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  int descriptor = -1;
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  Descriptor owned{descriptor};
  if (got == 0 || (message.msg_flags & MSG_TRUNC) != 0) return Arrival::gone;
  bytes.resize(static_cast<std::size_t>(got));
  if (beside) *beside = std::move(owned);
  return Arrival::whole;
}

/// 0, or an errno.
int send_to(int channel, std::string_view bytes, int beside) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (beside >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof beside);
    std::memcpy(CMSG_DATA(header), &beside, sizeof beside);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

bool is_gone(int error) noexcept { return error == EPIPE || error == ECONNRESET; }

}  // namespace

std::string to_message(std::string_view verb, std::uint64_t ticket, const HandedClient& client) {
  std::vector<std::string> words{std::string{verb}, std::to_string(ticket)};
  for_each_field(client, [&](std::string_view name, const auto& field) {
    words.emplace_back(name);
    words.push_back(written(field));
  });
  const std::vector<std::string_view> views{words.begin(), words.end()};
  std::string bytes;
  resp::append_command(bytes, views);
  return bytes;
}

std::optional<HandoverMessage> read_message(std::string_view bytes) {
  resp::RequestParser parser;
  if (parser.parse(bytes) != resp::RequestParser::State::complete) return std::nullopt;
  const auto words = parser.words();
  if (words.size() < 2) return std::nullopt;
  const auto ticket = parse_integer<std::uint64_t>(words[1]);
  if (!ticket) return std::nullopt;
  HandoverMessage message{.verb = std::string{words[0]}, .ticket = *ticket, .client = {}};
  for (std::size_t at = 2; at + 1 < words.size(); at += 2)
    for_each_field(message.client, [&](std::string_view name, auto& field) {
      if (name == words[at]) read_into(field, words[at + 1]);
    });
  return message;
}

ClientHandover::ClientHandover(loop::Loop& loop, Descriptor channel, char version)
    : loop_(loop), channel_(std::move(channel)), knows_scripts_(version >= 2) {
  loop_.add(channel_.number(), *this);
}

ClientHandover::~ClientHandover() {
  if (is_open()) loop_.remove(channel_.number());
}

bool ClientHandover::offer(HandedClient client, int descriptor, PoolClients& from) {
  if (!is_open() || in_transit_.size() >= most_in_transit) return false;
  Descriptor ours{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  if (!ours.is_open()) return false;
  const auto ticket = ++last_ticket_;
  // A channel that is full, and too many descriptors on their way: it goes later. Of one that is
  // gone ready() tells.
  if (send_to(channel_.number(), to_message("client", ticket, client), descriptor) != 0)
    return false;
  in_transit_.emplace(ticket, InTransit{std::move(client), std::move(ours), from});
  from.expect_back(1);
  return true;
}

void ClientHandover::hand_scripts(const HandedClient& of_pool, std::string_view scripts) {
  if (!is_open() || !knows_scripts_ || scripts.empty()) return;
  const Descriptor file{::memfd_create("scripts", MFD_CLOEXEC)};
  const bool is_written =
      file.is_open() && ::write(file.number(), scripts.data(), scripts.size()) ==
                            static_cast<ssize_t>(scripts.size());
  if (is_written &&
      send_to(channel_.number(), to_message("scripts", 0, of_pool), file.number()) == 0)
    return;
  log(LogLevel::warning,
      fmt::format("pool '{}': the successor is not told the scripts that clients have loaded: {}; "
                  "they hear NOSCRIPT once",
                  of_pool.pool, std::strerror(errno)));
}

void ClientHandover::ready(Readiness) {
  std::string bytes;
  while (is_open()) {
    const auto arrival = receive_from(channel_.number(), bytes, nullptr);
    if (arrival == Arrival::none) return;
    if (arrival == Arrival::gone) return lose();
    if (const auto message = read_message(bytes)) decided(*message);
  }
}

void ClientHandover::decided(const HandoverMessage& message) {
  auto passage = in_transit_.extract(message.ticket);
  if (passage.empty()) return;
  if (message.verb == "refused") return give_back(std::move(passage.mapped()));
  ++taken_;
  passage.mapped().from.expect_back(-1);
}

/// It is served here until it leaves.
void ClientHandover::give_back(InTransit passage) {
  passage.from.expect_back(-1);
  passage.from.take_back(passage.client, net::Socket{passage.connection.release()});
}

/// The successor is gone. What it had taken is gone with it; what it had not is served here.
void ClientHandover::lose() {
  loop_.remove(channel_.number());
  channel_.close();
  if (!in_transit_.empty())
    log(LogLevel::warning,
        fmt::format("the successor is gone: {} clients that were on their way to it are served on",
                    in_transit_.size()));
  for (auto& [ticket, passage] : std::exchange(in_transit_, {})) give_back(std::move(passage));
}

ClientHeritage::ClientHeritage(loop::Loop& loop, Descriptor channel, Find find)
    : loop_(loop), channel_(std::move(channel)), find_(std::move(find)) {
  loop_.add(channel_.number(), *this);
}

ClientHeritage::~ClientHeritage() { close(); }

void ClientHeritage::close() noexcept {
  if (channel_.is_open()) loop_.remove(channel_.number());
  channel_.close();
}

void ClientHeritage::ready(Readiness) {
  for (int left = messages_a_turn; left > 0 && channel_.is_open(); --left)
    if (!receive()) return;
  if (channel_.is_open()) loop_.again(*this);
}

/// False: there is nothing to receive.
bool ClientHeritage::receive() {
  std::string bytes;
  Descriptor connection;
  const auto arrival = receive_from(channel_.number(), bytes, &connection);
  if (arrival == Arrival::none) return false;
  const auto message = arrival == Arrival::whole ? read_message(bytes) : std::nullopt;
  if (message && message->verb == "scripts") {
    if (PoolClients* const heirs = find_(message->client)) heirs->take_scripts(connection);
    return true;
  }
  if (!message || message->verb != "client") {  // the predecessor has ended
    close();
    return true;
  }
  PoolClients* const heirs = connection.is_open() ? find_(message->client) : nullptr;
  Client* const client =
      heirs ? heirs->take_over(message->client, net::Socket{connection.release()}) : nullptr;
  if (!answer(client ? "taken" : "refused", message->ticket) && client) client->close();
  return true;
}

/// False: the predecessor is there and cannot be told, so that it owns the connection still.
bool ClientHeritage::answer(std::string_view verb, std::uint64_t ticket) {
  std::string bytes;
  resp::append_command(bytes, {verb, std::to_string(ticket)});
  const int error = send_to(channel_.number(), bytes, -1);
  if (error == 0 || is_gone(error)) return true;
  close();
  return false;
}

}  // namespace sluice::proxy::flow
