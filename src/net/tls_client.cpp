#include "net/tls_client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/instant.hpp"
#include "sluice/log.hpp"

namespace sluice::net {
namespace {

using std::chrono::microseconds;

/// Of certificates that were told of: servers may show a new one each day.
constexpr std::size_t most_told = 1000;

}  // namespace

TlsClient::TlsClient(TlsClientOptions options)
    : options_(std::move(options)),
      watch_({options_.files.certificate, options_.files.key, options_.files.ca}),
      context_(TlsContext::for_client(options_.files)) {}

void TlsClient::read_again() {
  if (!watch_.have_changed()) return;
  try {
    context_ = TlsContext::for_client(options_.files);
    log(LogLevel::info, "the files for TLS have changed; new connections use them");
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("the files for TLS have changed and cannot be used; new connections use what "
                    "they held before: {}",
                    error.message()));
  }
}

std::unique_ptr<Transport> TlsClient::connect(Socket socket, const std::string& host,
                                              const TlsFailure& failed) {
  const std::lock_guard lock{mutex_};
  read_again();
  return context_.connect(std::move(socket),
                          options_.server_name.empty() ? host : options_.server_name, failed);
}

SteadyTime TlsClient::warn_of_ends(const std::string& server, const Transport& connection) {
  if (options_.expiry_warning.count() == 0) return SteadyTime::max();
  const std::lock_guard lock{mutex_};
  read_again();
  const auto now = system_clock().wall();
  auto next = microseconds::max();
  if (const auto end = context_.certificate_ends())
    next = std::min(next,
                    warn(fmt::format("our certificate {}", options_.files.certificate), *end, now));
  if (const auto end = connection.certificate_ends())
    next =
        std::min(next, warn(fmt::format("the certificate that {} has shown", server), *end, now));
  return next == microseconds::max() ? SteadyTime::max()
                                     : Clock::add(system_clock().steady(), next);
}

/// How long there is nothing to say of this one.
microseconds TlsClient::warn(const std::string& whose, WallTime end, WallTime now) {
  if (end == WallTime::max()) return microseconds::max();
  if (const auto due = end - options_.expiry_warning; now < due) return due - now;
  if (told_.size() >= most_told) told_.clear();
  if (told_.emplace(whose, end).second)
    log(LogLevel::warning,
        fmt::format("{} {} on {}, {} days from now; new connections fail then: renew it", whose,
                    end > now ? "ends" : "has ended", to_text(end),
                    std::chrono::floor<std::chrono::days>(end - now).count()));
  return microseconds::max();
}

}  // namespace sluice::net
