#include "proxy/flow/pool_tls.hpp"

#include <fmt/format.h>

#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

net::TlsFiles files_of(const TlsSettings& settings) {
  return {.certificate = settings.certificate,
          .key = settings.key,
          .ca = settings.ca,
          .verify = settings.verify};
}

}  // namespace

std::shared_ptr<const PoolTls> PoolTls::read(const PoolSettings& settings) {
  auto tls = std::make_shared<PoolTls>();
  try {
    if (settings.listen_tls.on)
      tls->listen = net::TlsContext::for_server(files_of(settings.listen_tls));
    if (settings.server_tls.on)
      tls->server = net::TlsContext::for_client(files_of(settings.server_tls));
  } catch (const Error& bad) {
    throw Error{Errc::bad_argument, fmt::format("pool '{}': {}", settings.name, bad.message())};
  }
  return tls;
}

}  // namespace sluice::proxy
