/// Where a database server is, who asks, and how the way there is protected: the URL of PostgreSQL,
/// MariaDB or MySQL, taken apart.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::sale {

struct ServerUrl {
  std::string host;    ///< empty: by the socket
  std::uint16_t port;  ///< of the host; of PostgreSQL's socket, too
  std::string socket;  ///< empty: by the host, or where the client library looks for it
  std::string user;
  std::string password;
  std::string database;

  bool has_tls = false;
  bool is_verified = true;  ///< the certificate is looked at, and bears the host's name
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;

  std::string description;  ///< without the password
};

/// Throws Error{bad_argument} that says which part is wrong, and quotes no password.
ServerUrl server_url(const std::string& url, std::uint16_t usual_port);

}  // namespace sluice::sale
