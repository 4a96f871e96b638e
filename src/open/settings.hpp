/// What a URL and a program say of a server, as the options of its client.
#pragma once

#include "base/url.hpp"
#include "redis/cluster_store.hpp"
#include "redis/redis_store.hpp"
#include "redis/sentinel_store.hpp"
#include "sluice/open.hpp"

namespace sluice {

/// "rediss", and all that begin so.
bool is_secure(const Url& url);

// Throw Error{bad_argument} for what the URL should not say.

/// All but where the server is, and TLS.
redis::RedisOptions server_options(const Url& url, const OpenOptions& options);
/// For servers, or Sentinels alone. Null: the URL wants none. Reads the files.
std::shared_ptr<net::TlsClient> tls_client(const Url& url);
redis::ClusterStoreOptions cluster_options(const Url& url, const OpenOptions& options);
redis::SentinelStoreOptions sentinel_options(const Url& url, const OpenOptions& options);
int database_of(std::string_view text);

}  // namespace sluice
