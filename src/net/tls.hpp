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
  std::string ca;      ///< whose certificates are trusted; empty: for a client the system's, for a
                       ///< server nobody is asked
  bool verify = true;  ///< of a client: the certificate of the server, and its name
};

/// Told once of a connection whose handshake failed, with the reason.
using TlsFailure = std::function<void(std::string_view reason)>;

/// What connections of one kind share: certificates, and whom they trust. Threads: any.
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
