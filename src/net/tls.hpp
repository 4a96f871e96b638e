/// TLS 1.2 and 1.3 around a socket, with OpenSSL. It never blocks; the handshake goes on as bytes
/// are read and written.
///
/// What is read and written of one connection shares its keys, so a lock is held for as long as one
/// call works on what is there. After the handshake a read waits for bytes to read alone, and a
/// write for room alone: there is no renegotiation, and new keys that the peer asks for go out with
/// the next write.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/socket.hpp"
#include "net/transport.hpp"
#include "sluice/error.hpp"

struct ssl_ctx_st;

namespace sluice::net {

enum class TlsVersion { v1_2, v1_3 };

/// Files, PEM.
struct TlsFiles {
  std::string certificate;  ///< and those above it; empty: none is shown
  std::string key;
  /// The authorities that are trusted: a file, or a folder that `openssl rehash` has prepared.
  /// Empty: a client trusts those of the system, a server asks clients for no certificate.
  std::string ca;
  bool verify = true;  ///< a client verifies the server's certificate and its name
  TlsVersion least = TlsVersion::v1_2;
};

/// Called once for a connection that TLS has ended, in the handshake or with an alert behind it,
/// by the thread that reads or writes. The Error says why and what to do: {authentication} for a
/// certificate that one side does not take, {protocol} or {connection} for the rest.
using TlsFailure = std::function<void(const Error& why)>;

/// What connections of one kind share: certificates and trusted authorities. Threads: any.
class TlsContext {
 public:
  /// Throws Error{bad_argument} that names the file and says why it will not do.
  static TlsContext for_server(const TlsFiles& files);
  static TlsContext for_client(const TlsFiles& files);

  /// The side of the server. `failed` outlives the transport.
  std::unique_ptr<Transport> accept(Socket socket, const TlsFailure& failed) const;
  /// The side of the client, over a socket that is connected or about to be. `host` is the name (or
  /// numeric address) that the certificate must bear. Throws Error{bad_argument} for one that none
  /// can.
  std::unique_ptr<Transport> connect(Socket socket, const std::string& host,
                                     const TlsFailure& failed) const;

  /// When our own certificate ends; empty: we have none.
  std::optional<WallTime> certificate_ends() const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context, bool verify)
      : context_(std::move(context)), verify_(verify) {}
  std::shared_ptr<ssl_ctx_st> context_;
  bool verify_;
};

}  // namespace sluice::net
