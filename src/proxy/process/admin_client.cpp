#include "proxy/process/admin_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "proxy/config/read.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::process {

using Outcome = net::Transfer::Outcome;

AdminClient::AdminClient(const std::string& address, std::chrono::milliseconds patience, Peer peer,
                         const Tls& tls)
    : peer_(peer), address_(address), patience_(patience) {
  try {
    auto socket = net::Socket::start_connect(net::resolve(config::parse_address(address)).front());
    transport_ = tls ? tls(std::move(socket), note_tls_failure_)
                     : std::make_unique<net::Socket>(std::move(socket));
  } catch (const Error&) {  // no address, or no such host: it says so itself
    throw;
  } catch (const std::system_error& refused) {
    fail(refused.code().message(), sluice::Effect::none);
  }
  wait_for({.write = true});
  if (const int error = net::connect_error(transport_->descriptor()); error != 0)
    fail(std::strerror(error), sluice::Effect::none);
}

void AdminClient::fail(std::string_view why, sluice::Effect effect) const {
  if (!tls_failed_.empty()) why = tls_failed_;
  if (peer_ == Peer::server)
    throw sluice::Error{Errc::connection, fmt::format("server {}: {}", address_, why), effect};
  throw sluice::Error{
      Errc::connection,
      fmt::format("the proxy's administration at {}: {}; does it run, and does `admin:` of "
                  "its file say the same?",
                  address_, why),
      effect};
}

void AdminClient::wait_for(net::Transport::Wants wants) {
  const int events = (wants.read ? POLLIN : 0) | (wants.write ? POLLOUT : 0);
  pollfd wait{transport_->descriptor(), static_cast<short>(events), 0};
  int ready = 0;
  while ((ready = ::poll(&wait, 1, static_cast<int>(patience_.count()))) < 0 && errno == EINTR) {
  }
  if (ready <= 0)
    throw sluice::Error{
        Errc::timeout,
        fmt::format("{} at {} says nothing for {} ms",
                    peer_ == Peer::server ? "the server" : "the proxy's administration", address_,
                    patience_.count()),
        sluice::Effect::unknown};
}

void AdminClient::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = transport_->write_some(bytes);
    if (sent.is_refused()) return;  // why, the answer tells
    if (sent.outcome == Outcome::failed) fail(std::strerror(sent.error), sluice::Effect::unknown);
    if (sent.outcome == Outcome::would_block) wait_for(transport_->wants_to_write());
    bytes.remove_prefix(sent.bytes);
  }
}

Value AdminClient::ask(std::span<const std::string_view> words) {
  std::string command;
  resp::append_command(command, words);
  return std::move(ask_all(command, 1).front());
}

std::vector<Value> AdminClient::ask_all(std::string_view commands, std::size_t count) {
  write(commands);
  std::vector<Value> replies;
  std::array<char, 16384> bytes;
  while (replies.size() < count) {
    const auto got = transport_->read_some(bytes);
    if (got.outcome == Outcome::failed) fail(std::strerror(got.error), sluice::Effect::unknown);
    if (got.outcome == Outcome::closed) fail("it closed the connection", sluice::Effect::unknown);
    if (got.outcome == Outcome::would_block) wait_for(transport_->wants_to_read());
    std::string_view input{bytes.data(), got.bytes};
    while (auto reply = parser_.next(input)) replies.push_back(std::move(*reply));
  }
  return replies;
}

}  // namespace sluice::proxy::process
