#include "proxy/move/mover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "proxy/config/read.hpp"
#include "proxy/move/large_key.hpp"
#include "sluice/clock.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::move {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 1s;   // at proxies and servers
constexpr auto between_asks = 20ms;  // while something is waited for
constexpr std::chrono::nanoseconds longest_rest = 100ms;

/// By whom a pool's proxies log in at its servers.
MoveUser user_of(const PoolSettings& pool) {
  return {pool.server_user.empty() ? std::string{default_user} : pool.server_user,
          pool.server_password.empty() ? pool.redis_auth : pool.server_password};
}

/// As the pool's proxies speak to it.
GuardedServer::Tls tls_of(const PoolSettings& pool, const net::Endpoint& server) {
  const auto& settings = pool.server_tls;
  if (!settings.on) return {};
  return [context = net::TlsContext::for_client(config::files_of(settings)),
          host = settings.server_name.empty() ? server.host : settings.server_name](
             net::Socket socket, const net::TlsFailure& failed) {
    return context.connect(std::move(socket), host, failed);
  };
}

}  // namespace

std::string record_path(const std::string& after) { return after + ".move"; }

std::optional<MoveRecord> MoveRecord::read(const std::string& path) {
  std::ifstream file{path};
  MoveRecord record;
  std::string state;
  if (!(file >> record.user.name >> record.user.password >> state)) return std::nullopt;
  record.is_ending = state == "ending";
  record.is_fenced = record.is_ending || state == "fenced";
  return record;
}

void MoveRecord::write(const std::string& path) const {
  const auto text = fmt::format("{}\n{}\n{}\n", user.name, user.password,
                                is_ending   ? "ending"
                                : is_fenced ? "fenced"
                                            : "open");
  const auto fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::system_error{errno, std::generic_category(), fresh};
  const bool is_written =
      ::write(file, text.data(), text.size()) == std::ssize(text) && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (!is_written) throw std::system_error{error, std::generic_category(), fresh};
  std::filesystem::rename(fresh, path);
}

void Mover::tell(const std::string& line) const {
  if (options_.tell) options_.tell(line);
}

namespace {

/// Two movers would make one copy of a large key together. Throws Error where there is another.
Descriptor lock_file(const std::string& file) {
  Descriptor locked{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!locked.is_open() || ::flock(locked.number(), LOCK_EX | LOCK_NB) != 0)
    throw Error{Errc::bad_argument,
                fmt::format("{}: its keys are being moved by another process", file)};
  return locked;
}

}  // namespace

Mover::Mover(MoveOptions options)
    : options_(std::move(options)),
      before_(config::load(options_.before)),
      after_(config::load(options_.after)),
      print_(config::print_of_move(before_, after_)),
      record_path_(record_path(options_.after)) {
  if (options_.proxies.empty())
    throw Error{Errc::bad_argument, "name the administration of each proxy of these servers"};
  if (const auto record = MoveRecord::read(record_path_))
    record_ = *record;
  else
    record_.user = {"sluice-move-" + random_hex_128().substr(0, 8), random_hex_128()};
  if (const auto other = MoveRecord::read(record_path(options_.before)); other && other->is_fenced)
    user_before_ = other->user;
  for (const auto* const file : {&options_.before, &options_.after})
    locks_.push_back(lock_file(*file));
  make_servers();
}

Mover::~Mover() = default;

void Mover::make_servers() {
  for (const auto& pool : config::moving_pools(before_, after_)) {
    for (const auto* const ring : {pool.before, pool.after})
      for (const auto& server : ring->servers) {
        auto& made = servers_[net::to_string(server.endpoint)];
        if (!made)
          made = std::make_unique<GuardedServer>(
              server.endpoint, user_before_.value_or(user_of(*pool.before)), record_.user,
              user_of(*pool.after).name, tls_of(*pool.before, server.endpoint));
      }
  }
}

Value Mover::ask_proxy(const std::string& proxy, std::span<const std::string_view> words) const {
  process::AdminClient client{proxy};
  return client.ask(words);
}

std::string Mover::order_proxy(const std::string& proxy,
                               std::span<const std::string_view> words) const {
  const auto reply = ask_proxy(proxy, words);
  if (!reply.is_error()) return reply.as_text();
  std::string_view why = reply.as_text();
  if (why.starts_with("ERR ")) why.remove_prefix(4);
  throw Error{Errc::bad_argument, fmt::format("the proxy at {}: {}", proxy, why)};
}

void Mover::order_proxies(std::string_view phase) const {
  const std::string_view words[] = {
      "MOVE", phase, options_.after, record_.user.name, record_.user.password, print_};
  for (const auto& proxy : options_.proxies) order_proxy(proxy, words);
}

bool Mover::are_drained() const {
  static constexpr std::string_view words[] = {"MOVE", "STATUS"};
  return std::ranges::all_of(options_.proxies, [&](const std::string& proxy) {
    return order_proxy(proxy, words).contains(" drained ");
  });
}

bool Mover::rest(std::chrono::nanoseconds time) {
  std::this_thread::sleep_for(time);
  return !is_stopped();
}

/// Nothing is under way that does not know of the move, and nothing can come.
void Mover::hold() {
  order_proxies("HELD");
  tell("held: requests with keys that move wait");
  const auto until = system_clock().steady() + options_.patience;
  while (!are_drained()) {
    if (system_clock().steady() >= until)
      throw Error{
          Errc::timeout,
          fmt::format("after {} ms clients are still amid of requests; no key has moved: run it "
                      "again with more --patience",
                      options_.patience.count())};
    for (const auto& [name, server] : servers_) server->end_waiting();
    std::this_thread::sleep_for(between_asks);
  }
  for (const auto& [name, server] : servers_) server->fence();
  record_.is_fenced = true;
  record_.write(record_path_);
  tell(
      "fenced: who does not know of the move has no rights to keys at the servers until it ends; "
      "should this command die, start it again");
  for (const auto& [name, server] : servers_)
    if (const auto others = server->strangers(); !others.empty())
      tell(fmt::format("{}: the fence does not concern {}; they must not write keys that move",
                       name, others));
}

/// If that fails, all is as before, where it can be.
void Mover::try_to_hold() {
  try {
    hold();
  } catch (const Error&) {
    try {
      if (!user_before_) cancel();
    } catch (const Error& why) {
      tell(fmt::format("{}: use --cancel", why.message()));
    }
    throw;
  }
}

/// What was started again is told where we are.
void Mover::look_around() {
  const auto now = system_clock().steady();
  if (now - looked_ < between_looks) return;
  looked_ = now;
  const std::string_view words[] = {
      "MOVE", "MOVING", options_.after, record_.user.name, record_.user.password, print_};
  for (const auto& proxy : options_.proxies) {
    if (record_.is_ending) break;
    try {
      order_proxy(proxy, words);
    } catch (const Error& why) {
      tell(why.message());
    }
  }
  for (const auto& [name, server] : servers_) {
    try {
      server->look_after();
    } catch (const Error& why) {
      tell(why.message());
    }
  }
}

/// As long again as what was begun then has taken, so that clients have the server for half of the
/// time. False: we are told to stop.
bool Mover::rest_since(SteadyTime begun) {
  look_around();
  return rest(std::min<std::chrono::nanoseconds>(system_clock().steady() - begun, longest_rest));
}

/// What could not be moved, and why.
void Mover::note_trouble(const GuardedServer& from, std::string_view to,
                         const std::string& trouble) {
  if (last_trouble_ != trouble)
    tell(fmt::format("{} -> {}: {}; it is tried again", from.name(), to, trouble));
  last_trouble_ = trouble;
}

/// In one command: its servers stand still for that.
void Mover::take_at_once(GuardedServer& from, GuardedServer& to, int database,
                         std::span<const std::string> keys) {
  const auto begun = system_clock().steady();
  const auto trouble = from.migrate(database, keys, to.endpoint());
  if (trouble.empty())
    moved_ += std::ssize(keys);
  else
    note_trouble(from, to.name(), trouble);
  rest_since(begun);
}

void Mover::take_large(GuardedServer& from, GuardedServer& to, int database,
                       const std::string& key) {
  auto begun = system_clock().steady();
  const auto rest_a_while = [&] {
    const bool goes_on = rest_since(begun);
    begun = system_clock().steady();
    return goes_on;
  };
  try {
    if (copy_in_pieces(from, to, database, key, rest_a_while)) {
      ++moved_;
    } else if (!is_stopped()) {
      tell(
          fmt::format("{} -> {}: '{}' is large, and can be moved as a whole only: they stand still",
                      from.name(), to.name(), key));
      take_at_once(from, to, database, std::span{&key, 1});
    }
  } catch (const Error& why) {
    note_trouble(from, to.name(), why.message());
    rest(between_looks);
  }
}

/// False: there were keys that move.
bool Mover::take(GuardedServer& from, int database, const config::Journey& journey,
                 const std::vector<std::string>& keys) {
  std::map<std::string, std::vector<std::string>> by_home;
  for (const auto& key : keys) {
    if (key.starts_with(hidden_prefix)) continue;
    if (const auto to = journey.destination(from.endpoint(), key))
      by_home[net::to_string(*to)].push_back(key);
  }
  for (const auto& [name, its] : by_home) {
    auto& to = *servers_.at(name);
    const auto sizes = from.sizes(database, its);
    std::vector<std::string> small;
    for (std::size_t at = 0; at < its.size() && !is_stopped(); ++at) {
      if (sizes[at] > RingMove::large_key)
        take_large(from, to, database, its[at]);
      else
        small.push_back(its[at]);
    }
    for (std::size_t at = 0; at < small.size() && !is_stopped(); at += options_.batch)
      take_at_once(from, to, database,
                   std::span{small}.subspan(at, std::min(options_.batch, small.size() - at)));
  }
  return by_home.empty();
}

/// False: there were keys that move.
bool Mover::go_over(GuardedServer& server, const config::Journey& journey) {
  bool is_clean = true;
  for (const int database : server.databases()) {
    std::string cursor = "0";
    do {
      look_around();
      auto scanned = server.scan(database, cursor);
      is_clean &= take(server, database, journey, scanned.keys);
      cursor = std::move(scanned.cursor);
    } while (cursor != "0" && !is_stopped());
  }
  return is_clean;
}

/// False: it was stopped, or there were keys that move.
bool Mover::go_over_all() {
  bool is_clean = true;
  for (const auto& pool : config::moving_pools(before_, after_)) {
    const config::Journey journey{pool};
    for (const auto& ring_server : pool.before->servers) {
      auto& server = *servers_.at(net::to_string(ring_server.endpoint));
      try {
        is_clean &= go_over(server, journey);
      } catch (const Error& why) {  // it may come back
        tell(fmt::format("{}; it is tried again", why.message()));
        is_clean = false;
        rest(between_looks);
      }
      if (is_stopped()) return false;
      tell(fmt::format("{}: {} keys moved so far", server.name(), moved_));
    }
  }
  return is_clean;
}

/// A proxy that is started again reads its own file: that has to be the new one.
bool Mover::wait_for_files() {
  static constexpr std::string_view words[] = {"MOVE", "READY"};
  std::string told;
  for (;;) {
    std::string missing;
    for (const auto& proxy : options_.proxies) {
      try {
        order_proxy(proxy, words);
      } catch (const Error& why) {
        missing = why.message();
      }
    }
    if (missing.empty()) return true;
    if (told != missing) tell(fmt::format("all keys have moved, but {}", missing));
    told = missing;
    look_around();
    if (!rest(between_asks * 10)) return false;
  }
}

void Mover::end() {
  record_.is_ending = true;
  record_.write(record_path_);
  for (const auto& [name, server] : servers_) server->allow_after();
  static constexpr std::string_view words[] = {"MOVE", "END"};
  for (const auto& proxy : options_.proxies) order_proxy(proxy, words);
  const auto until = system_clock().steady() + options_.patience;
  while (!are_drained() && system_clock().steady() < until)
    std::this_thread::sleep_for(between_asks);
  for (const auto& [name, server] : servers_) {
    if (user_before_) server->forget(user_before_->name);
    server->forget(record_.user.name);
  }
  std::filesystem::remove(record_path_);
  if (user_before_) std::filesystem::remove(record_path(options_.before));
}

bool Mover::run() {
  record_.write(record_path_);
  for (const auto& [name, server] : servers_) server->admit();
  if (!record_.is_ending && !move_all()) return false;
  if (!wait_for_files()) return false;
  end();
  tell(fmt::format("done: {} keys have moved", moved_));
  return true;
}

/// False: it was stopped.
bool Mover::move_all() {
  if (record_.is_fenced)
    for (const auto& [name, server] : servers_) server->fence();
  else
    try_to_hold();
  looked_ = {};
  look_around();
  tell("moving");
  for (int clean = 0; clean < 2;) {
    clean = go_over_all() ? clean + 1 : 0;
    if (is_stopped()) return false;
  }
  return true;
}

void Mover::cancel() {
  if (user_before_)
    throw Error{Errc::bad_argument, "keys are on their way back: run it again without --cancel"};
  static constexpr std::string_view status[] = {"MOVE", "STATUS"};
  for (const auto& proxy : options_.proxies)
    if (order_proxy(proxy, status).starts_with("moving "))
      throw Error{Errc::bad_argument,
                  fmt::format("keys move already: to move them back, give {} and {}",
                              options_.after, options_.before)};
  for (const auto& [name, server] : servers_) server->lift();
  static constexpr std::string_view words[] = {"MOVE", "CANCEL"};
  for (const auto& proxy : options_.proxies) order_proxy(proxy, words);
  for (const auto& [name, server] : servers_) server->forget(record_.user.name);
  std::filesystem::remove(record_path_);
}

}  // namespace sluice::proxy::move
