#include "proxy/process/admin_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "proxy/config/read.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::process {

using Outcome = net::Transfer::Outcome;

AdminClient::AdminClient(const std::string& address, std::chrono::milliseconds patience, Peer peer)
    : peer_(peer), address_(address), patience_(patience) {
  try {
    socket_ = net::Socket::start_connect(net::resolve(config::parse_address(address)).front());
  } catch (const Error&) {  // no address, or no such host: it says so itself
    throw;
  } catch (const std::system_error& refused) {
    fail(refused.code().message(), sluice::Effect::none);
  }
  wait_for(POLLOUT);
  if (const int error = socket_.connect_error()) fail(std::strerror(error), sluice::Effect::none);
}

void AdminClient::fail(std::string_view why, sluice::Effect effect) const {
  if (peer_ == Peer::server)
    throw sluice::Error{Errc::connection, fmt::format("server {}: {}", address_, why), effect};
  throw sluice::Error{
      Errc::connection,
      fmt::format("the proxy's administration at {}: {}; does it run, and does `admin:` of "
                  "its file say the same?",
                  address_, why),
      effect};
}

void AdminClient::wait_for(short events) {
  pollfd wait{socket_.descriptor(), events, 0};
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
    const auto sent = socket_.write_some(bytes);
    if (sent.outcome == Outcome::failed) fail(std::strerror(sent.error), sluice::Effect::unknown);
    if (sent.outcome == Outcome::would_block) wait_for(POLLOUT);
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
    const auto got = socket_.read_some(bytes);
    if (got.outcome == Outcome::failed) fail(std::strerror(got.error), sluice::Effect::unknown);
    if (got.outcome == Outcome::closed) fail("it closed the connection", sluice::Effect::unknown);
    if (got.outcome == Outcome::would_block) wait_for(POLLIN);
    std::string_view input{bytes.data(), got.bytes};
    while (auto reply = parser_.next(input)) replies.push_back(std::move(*reply));
  }
  return replies;
}

}  // namespace sluice::proxy::process
