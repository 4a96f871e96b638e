#include "proxy/flow/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/config/read.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

std::unique_ptr<Protocol> make_protocol(const PoolSettings& settings, std::size_t mbuf_size) {
  return settings.redis ? make_redis_protocol(settings, mbuf_size)
                        : make_memcached_protocol(settings);
}

}  // namespace

std::shared_ptr<SharedServer> SharedPool::server_of(const ServerSettings& server,
                                                    const PoolSettings& pool) {
  const std::lock_guard lock{mutex_};
  if (pool.is_of_cluster())  // its nodes come and go
    std::erase_if(servers_, [](const auto& one) { return one.second.use_count() == 1; });
  auto& shared = servers_[server.name + ' ' + net::to_string(server.endpoint)];
  if (!shared)
    shared = std::make_shared<SharedServer>(health_policy(pool), version);
  else if (shared->health.set_policy(health_policy(pool)))
    log(LogLevel::warning, fmt::format("pool '{}': server '{}' is back: the pool ejects none now",
                                       pool.name, server.name));
  return shared;
}

void SharedPool::follow_masters(const std::shared_ptr<const PoolSettings>& settings,
                                const std::shared_ptr<const PoolTls>& tls, Resolver& resolver) {
  const auto follow = [&]<class Watch>(std::shared_ptr<Watch>& watch, bool is_needed) {
    auto now = this->watch(watch);
    if (now && is_needed && now->serves(*settings)) return;
    now = is_needed ? std::make_shared<Watch>(settings, tls, resolver) : nullptr;
    const std::lock_guard lock{mutex_};
    watch.swap(now);
  };
  follow(masters_, !settings->sentinels.empty());
  follow(cluster_, settings->is_of_cluster());
}

std::shared_ptr<const PoolTls> PoolTls::read(const PoolSettings& settings) {
  auto tls = std::make_shared<PoolTls>();
  try {
    if (settings.listen_tls.on)
      tls->listen = net::TlsContext::for_server(config::files_of(settings.listen_tls));
    if (settings.server_tls.on)
      tls->server = net::TlsContext::for_client(config::files_of(settings.server_tls));
    if (const auto& sentinel = settings.tls_to_sentinels(); sentinel.on)
      tls->sentinel = net::TlsContext::for_client(config::files_of(sentinel));
  } catch (const Error& bad) {
    throw Error{Errc::bad_argument, fmt::format("pool '{}': {}", settings.name, bad.message())};
  }
  return tls;
}

Pool::Pool(PoolContext context, std::shared_ptr<const PoolSettings> settings,
           std::shared_ptr<SharedPool> shared, std::shared_ptr<const PoolTls> tls)
    : context_(context),
      settings_(std::move(settings)),
      shared_(std::move(shared)),
      tls_(std::move(tls)),
      tls_failed_([this](const Error& why) { note_tls_failure(why.message()); }),
      watch_(context_.registry.pool(context_.worker, settings_->name)),
      protocol_(make_protocol(*settings_, context_.mbuf_size)),
      detours_(*this),
      clients_(*this),
      servers_(*this) {
  shared_->parts->enter(*this);
  apply_mirror();
}

Pool::~Pool() {
  clients_.close_all();
  shared_->parts->leave(*this);  // behind it: another part drops requests of clients that are gone
  end_mirror();
}

void Pool::apply_mirror() {
  if (settings_->mirror.pool.empty()) return end_mirror();
  if (!mirror_) mirror_ = std::make_unique<Mirror>(*this, next_mirrored_);
}

void Pool::end_mirror() {
  if (!mirror_) return;
  mirror_->end();
  next_mirrored_ = mirror_->next();
  loop().bury(std::move(mirror_));
}

void Pool::apply(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls) {
  tls_ = std::move(tls);  // the files may have changed under the same names
  const auto before = std::exchange(settings_, std::move(settings));
  if (*before == *settings_) return;
  const auto protocol_before =  // the clients' rights, until they have others
      std::exchange(protocol_, make_protocol(*settings_, context_.mbuf_size));
  servers_.apply(*before);
  clients_.apply(*before);
  if (before->mirror.pool != settings_->mirror.pool) end_mirror();
  apply_mirror();
}

std::unique_ptr<net::Transport> Pool::accept(net::Socket socket) const {
  if (settings_->tcpkeepalive) socket.keep_alive();
  if (tls_->listen) return tls_->listen->accept(std::move(socket), tls_failed_);
  return std::make_unique<net::Socket>(std::move(socket));
}

std::unique_ptr<net::Transport> Pool::connect(const Server& server) const {
  auto socket = net::Socket::start_connect(server.addresses().current());
  if (!tls_->server) return std::make_unique<net::Socket>(std::move(socket));
  const auto& name = settings_->server_tls.server_name;
  return tls_->server->connect(std::move(socket),
                               name.empty() ? servers_.certified_host(server) : name, tls_failed_);
}

/// Every failure is counted; one a second is logged.
void Pool::note_tls_failure(std::string_view reason) {
  counters().tls_failures.add();
  if (tls_told_.is_due(loop().now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': a TLS handshake failed: {}", settings_->name, reason));
}

void Pool::tick() {
  servers_.tick();
  clients_.tick();
  protocol_->trim();
}

void Pool::observe(Server& server, const Request& request, std::string_view reply, bool waited) {
  const auto took = loop().now() - request.since;
  if (!waited) {
    watch_->latencies.observe(request.command, took);
    server.watch().latency.observe(took);
  }
  auto& notes = context_.registry.worker(context_.worker);
  if (!waited && notes.slow_log.is_slow(took) && notes.slow_log.may_note(loop().now()))
    notes.slow_log.note({.took = took,
                         .pool = settings_->name,
                         .command = protocol_->command_name(request.command),
                         .key = noted_key(request),
                         .client = request.receiver->peer(),
                         .server = server.settings().name},
                        loop().clock().wall());
  if (const auto bytes = std::max<std::size_t>(reply.size(), request.size);
      notes.big_values.is_big(bytes))
    notes.big_values.note(bytes, settings_->name, protocol_->command_name(request.command),
                          noted_key(request), loop().clock().wall());
}

}  // namespace sluice::proxy::flow
