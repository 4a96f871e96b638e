/// TLS 1.2 and 1.3 around a socket, with OpenSSL. It never blocks; the handshake goes on as bytes
/// are read and written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/socket.hpp"
#include "net/transport.hpp"

struct ssl_ctx_st;

namespace sluice::net {

/// Files, PEM.
struct TlsFiles {
  std::string certificate;  ///< and those above it; empty: none is shown
  std::string key;
  /// The authorities that are trusted. Empty: a client trusts those of the system, a server asks
  /// clients for no certificate.
  std::string ca;
  bool verify = true;  ///< a client verifies the server's certificate and its name
};

/// Called once for a connection whose handshake failed, with the reason.
using TlsFailure = std::function<void(std::string_view reason)>;

/// What connections of one kind share: certificates and trusted authorities. Threads: any.
class TlsContext {
 public:
  /// Throws Error{bad_argument} that names the file and says why it will not do.
  static TlsContext for_server(const TlsFiles& files);
  static TlsContext for_client(const TlsFiles& files);

  /// The side of the server. `failed` outlives the transport.
  std::unique_ptr<Transport> accept(Socket socket, const TlsFailure& failed) const;
  /// The side of the client, over a socket that is connected or about to be. `host` is the name (or
  /// numeric address) that the certificate must bear.
  std::unique_ptr<Transport> connect(Socket socket, const std::string& host,
                                     const TlsFailure& failed) const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context, bool verify)
      : context_(std::move(context)), verify_(verify) {}
  std::shared_ptr<ssl_ctx_st> context_;
  bool verify_;
};

}  // namespace sluice::net
