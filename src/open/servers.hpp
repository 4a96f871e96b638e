/// The servers behind a URL, each by itself: for those who examine a deployment, not for those who
/// use it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.hpp"
#include "redis/sentinel_store.hpp"
#include "sluice/open.hpp"
#include "topology/endpoint.hpp"

namespace sluice {

class Servers {
 public:
  enum class Kind { alone, sentinels, cluster };

  /// Throws Error{bad_argument} as open() does. Connects to nothing.
  Servers(std::string_view url, const OpenOptions& options = {});

  Kind kind() const noexcept { return kind_; }
  bool is_secure() const noexcept { return server_.tls != nullptr; }
  /// Those that the URL names: Sentinels, or nodes.
  const std::vector<topology::Endpoint>& seeds() const noexcept { return seeds_; }
  /// Of the master, as the Sentinels have it.
  const std::string& master_name() const noexcept { return master_name_; }

  /// A Store of one of them alone. It is asked with the URL's user, or with that of the Sentinels.
  /// Throws Error as open() does.
  std::unique_ptr<Store> open_server(const topology::Endpoint& server) const;
  std::unique_ptr<Store> open_sentinel(const topology::Endpoint& sentinel) const;
  /// When the certificate ends that it shows. Nothing: this is not over TLS. Throws Error.
  std::optional<WallTime> certificate_ends(const topology::Endpoint& server) const;

 private:
  Kind kind_ = Kind::alone;
  redis::RedisOptions server_;
  redis::RedisOptions sentinel_;
  std::vector<topology::Endpoint> seeds_;
  std::string master_name_;
};

}  // namespace sluice
