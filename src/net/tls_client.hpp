/// How the connections of one client speak TLS: from the files as they are now, with a warning
/// before a certificate ends.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "net/file_watch.hpp"
#include "net/tls.hpp"

namespace sluice::net {

struct TlsClientOptions {
  TlsFiles files;
  /// What certificates must bear in place of what was dialled; empty: that.
  std::string server_name;
  /// So long before a certificate ends the log says so. 0: never.
  std::chrono::seconds expiry_warning = std::chrono::days{30};
};

/// Files that have changed are read for the next connection. What cannot be read then is told in
/// the log, once, and the files of before stay in use: a certificate and its key are seldom
/// replaced in the same instant.
/// Threads: any.
class TlsClient {
 public:
  /// Throws Error{bad_argument} that names the file and says why it will not do.
  explicit TlsClient(TlsClientOptions options);

  /// As TlsContext::connect(), to `host`. Reads files that have changed.
  std::unique_ptr<Transport> connect(Socket socket, const std::string& host,
                                     const TlsFailure& failed);

  /// Logs of our certificate and of that which `server` has shown on this connection whether it
  /// ends soon, once for each. Says when there may be something to log next.
  SteadyTime warn_of_ends(const std::string& server, const Transport& connection);

 private:
  // REQUIRES: mutex_ is held
  void read_again();
  std::chrono::microseconds warn(const std::string& whose, WallTime end, WallTime now);

  const TlsClientOptions options_;
  std::mutex mutex_;
  FileWatch watch_;  // began before `context_` was made, so that no change is missed
  TlsContext context_;
  std::set<std::pair<std::string, WallTime>> told_;
};

}  // namespace sluice::net
