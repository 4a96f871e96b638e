#include "proxy/flow/masters.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <system_error>
#include <tuple>

#include "base/thread.hpp"
#include "net/socket.hpp"
#include "net/transport.hpp"
#include "proxy/config/read.hpp"
#include "proxy/flow/pool.hpp"
#include "resp/reply_parser.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;
using topology::SentinelQuestion;

constexpr auto between_attempts = 200ms;
constexpr auto kept_for = 10s;  // a line that nothing is asked by
constexpr std::size_t most_lines = 1000;
/// What a Sentinel tells is small.
constexpr resp::ReplyLimits limits{
    .bulk = 1 << 20, .line = 64 << 10, .items = 1 << 16, .depth = 16, .whole = 16 << 20};

net::Endpoint net_endpoint(const topology::Endpoint& endpoint) {
  return {.host = endpoint.host, .port = endpoint.port, .unix_path = {}};
}

std::vector<topology::Endpoint> seeds(const PoolSettings& settings) {
  std::vector<topology::Endpoint> all;
  for (const auto& text : settings.sentinels) {
    const auto endpoint = config::parse_address(text);
    all.push_back({endpoint.host, endpoint.port});
  }
  return all;
}

bool is_text(const Value& value, std::string_view text) {
  return value.is_text() && value.as_text() == text;
}

}  // namespace

/// One connection to a Sentinel or a server, by which questions go one after another.
class Masters::Line {
 public:
  Line(Masters& owner, LineKey key)
      : owner_(owner),
        key_(std::move(key)),
        failed_([this](const Error& why) { tls_failure_ = why.message(); }) {}

  void ask(SteadyTime now, std::size_t master, const SentinelQuestion& question) {
    asked_ = now;
    open(now);
    if (!socket_) return owner_.failed(master, question.id, why_not_);
    Asked asked{.master = master, .question = question.id, .left = 0, .replies = {}};
    const auto commands = question.to == SentinelQuestion::To::sentinel
                              ? topology::sentinel_commands(owner_.masters_[master].name)
                              : std::vector<std::vector<std::string>>{{"ROLE"}};
    for (const auto& command : commands) say({command.begin(), command.end()});
    asked.left = commands.size();
    questions_.push_back(std::move(asked));
  }
  /// Keeps it connected.
  void listen(SteadyTime now) {
    asked_ = now;
    open(now);
  }
  SteadyTime asked() const noexcept { return asked_; }

  /// What to wait for; no descriptor: nothing.
  pollfd wanted() const noexcept {
    if (!socket_) return {.fd = -1, .events = 0, .revents = 0};
    short events = is_connected_ ? POLLIN : POLLOUT;
    if (is_connected_ && sent_ < out_.size()) {
      const auto wants = socket_->wants_to_write();
      events = static_cast<short>(events | (wants.write ? POLLOUT : 0));
    }
    if (is_connected_ && socket_->wants_to_read().write)
      events = static_cast<short>(events | POLLOUT);
    return {.fd = socket_->descriptor(), .events = events, .revents = 0};
  }
  void ready() {
    if (!is_connected_) {
      if (const int error = net::connect_error(socket_->descriptor()); error != 0)
        return close(std::generic_category().message(error));
      is_connected_ = true;
    }
    write();
    if (socket_) read();
  }
  void close(std::string why) {
    why_not_ = tls_failure_.empty() ? std::move(why) : std::exchange(tls_failure_, {});
    socket_.reset();
    parser_ = resp::ReplyParser{limits};
    out_.clear();
    sent_ = handshake_ = 0;
    is_connected_ = false;
    for (const auto& asked : std::exchange(questions_, {}))
      owner_.failed(asked.master, asked.question, why_not_);
  }

 private:
  struct Asked {
    std::size_t master;
    std::uint64_t question;
    std::size_t left;
    std::vector<Value> replies;
  };

  void say(const std::vector<std::string_view>& words) { resp::append_command(out_, words); }

  void open(SteadyTime now) {
    if (socket_ || now < retry_) return;
    retry_ = now + between_attempts;
    try {
      const auto addresses = net::resolve(net_endpoint(key_.to));
      const auto& address = addresses[attempts_++ % addresses.size()];
      auto socket = net::Socket::start_connect(address);
      const auto& tls = owner_.tls_->server;
      const auto& name = owner_.settings_->server_tls.server_name;
      socket_ = tls ? tls->connect(std::move(socket), name.empty() ? key_.to.host : name, failed_)
                    : std::make_unique<net::Socket>(std::move(socket));
      greet();
    } catch (const Error& error) {
      why_not_ = error.message();
    } catch (const std::system_error& error) {
      why_not_ = error.code().message();
    }
  }
  /// The password of the servers is no business of a Sentinel's.
  void greet() {
    const auto& settings = *owner_.settings_;
    const bool is_server = key_.use == Use::asks_server;
    const auto& user = is_server ? settings.server_user : settings.sentinel_user;
    const auto& password = !is_server                         ? settings.sentinel_password
                           : settings.server_password.empty() ? settings.redis_auth
                                                              : settings.server_password;
    if (!password.empty()) {
      if (user.empty())
        say({"AUTH", password});
      else
        say({"AUTH", user, password});
      ++handshake_;
    }
    if (key_.use == Use::hears_sentinel) say({"SUBSCRIBE", topology::switch_channel});
  }

  void write() {
    while (sent_ < out_.size()) {
      const auto transfer = socket_->write_some(std::string_view{out_}.substr(sent_));
      if (transfer.outcome == net::Transfer::Outcome::would_block) return;
      if (transfer.outcome != net::Transfer::Outcome::moved) return close_by(transfer);
      sent_ += transfer.bytes;
    }
    out_.clear();
    sent_ = 0;
  }
  void read() {
    std::array<char, net::Transport::whole_read> buffer;
    const auto transfer = socket_->read_some(buffer);
    if (transfer.outcome == net::Transfer::Outcome::would_block) return;
    if (transfer.outcome != net::Transfer::Outcome::moved) return close_by(transfer);
    std::string_view bytes{buffer.data(), transfer.bytes};
    try {
      while (socket_) {
        auto value = parser_.next(bytes);
        if (!value) break;
        take(std::move(*value));
      }
    } catch (const Error& error) {
      close(error.message());
    }
  }
  void close_by(const net::Transfer& transfer) {
    close(transfer.error == 0 ? "it closed the connection"
                              : std::generic_category().message(transfer.error));
  }

  void take(Value value) {
    if (handshake_ > 0) {
      --handshake_;
      if (value.is_error()) close("it refuses AUTH: " + value.as_text());
      return;
    }
    if (key_.use == Use::hears_sentinel) return hear(value);
    if (questions_.empty()) return close("it sent a reply to no question");
    Asked& asked = questions_.front();
    asked.replies.push_back(std::move(value));
    if (--asked.left > 0) return;
    const auto done = std::move(asked);
    questions_.pop_front();
    owner_.answered(done.master, done.question, done.replies);
  }
  void hear(const Value& push) {
    if (push.is_error()) return close(push.as_text());
    const auto& items = push.as_items();
    if (items.size() != 3) return;
    if (is_text(items[0], "subscribe")) owner_.is_back(key_.to);
    if (is_text(items[0], "message") && items[2].is_text()) owner_.heard(items[2].as_text());
  }

  Masters& owner_;
  const LineKey key_;
  const net::TlsFailure failed_;
  std::string tls_failure_;
  std::unique_ptr<net::Transport> socket_;
  bool is_connected_ = false;
  std::size_t handshake_ = 0;  // replies to AUTH that have not come
  std::size_t attempts_ = 0;
  SteadyTime retry_{};
  SteadyTime asked_{};
  std::string why_not_ = "it is still being connected";
  std::string out_;
  std::size_t sent_ = 0;
  std::deque<Asked> questions_;
  resp::ReplyParser parser_{limits};
};

Masters::Masters(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls)
    : settings_(std::move(settings)),
      tls_(std::move(tls)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd") {
  masters_.reserve(settings_->servers.size());
  for (const auto& server : settings_->servers) {
    masters_.emplace_back(server.name,
                          topology::SentinelWatch{seeds(*settings_), {.name = server.name}});
    places_[server.name];
  }
  thread_ = start_thread([this] { run(); });
}

Masters::~Masters() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  ::eventfd_write(wake_.number(), 1);
  thread_.join();
}

bool Masters::serves(const PoolSettings& settings) const {
  const auto what = [](const PoolSettings& one) {
    std::vector<std::string> names;
    for (const auto& server : one.servers) names.push_back(server.name);
    return std::tuple{
        names,           one.sentinels,       one.sentinel_user, one.sentinel_password,
        one.server_user, one.server_password, one.redis_auth,    one.server_tls};
  };
  return what(settings) == what(*settings_);
}

Masters::Place Masters::of(std::string_view name) const {
  const std::lock_guard lock{mutex_};
  const auto found = places_.find(name);
  return found == places_.end() ? Place{} : found->second;
}

void Masters::doubt(std::string_view name) {
  {
    const std::lock_guard lock{mutex_};
    if (std::ranges::find(doubted_, name) != doubted_.end()) return;
    doubted_.emplace_back(name);
  }
  ::eventfd_write(wake_.number(), 1);
}

void Masters::run() {
  for (;;) {
    const auto now = system_clock().steady();
    {
      const std::lock_guard lock{mutex_};
      if (ending_) break;
      for (const auto& name : std::exchange(doubted_, {}))
        for (auto& master : masters_)
          if (master.name == name) master.watch.doubt(now);
    }
    wait(act(now));
  }
  lines_.clear();
}

SteadyTime Masters::act(SteadyTime now) {
  auto next = SteadyTime::max();
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    auto& master = masters_[i];
    for (const auto& question : master.watch.act(now)) {
      const auto use =
          question.to == SentinelQuestion::To::sentinel ? Use::asks_sentinel : Use::asks_server;
      line({use, question.node}).ask(now, i, question);
    }
    for (const auto& sentinel : master.watch.sentinels())
      line({Use::hears_sentinel, sentinel}).listen(now);
    tell(master);
    next = std::min(next, master.watch.wakes());
  }
  forget_lines(now);
  return next;
}

void Masters::forget_lines(SteadyTime now) {
  std::erase_if(lines_, [&](const auto& one) {
    const bool is_old = lines_.size() > most_lines || one.second->asked() + kept_for <= now;
    if (is_old) one.second->close("it is not needed any more");
    return is_old;
  });
}

void Masters::tell(Master& master) {
  const auto& now = master.watch.master();
  if (now == master.told) return;
  Place place;
  if (now) {
    try {
      place.addresses = net::resolve(net_endpoint(*now));
      place.host = now->host;
    } catch (const Error& error) {
      log(LogLevel::warning, error.message());
      return;  // once more with the next event
    }
  }
  log(LogLevel::warning,
      now ? fmt::format("pool '{}': the master '{}' is {} now", settings_->name, master.name,
                        to_string(*now))
          : fmt::format("pool '{}': {} is not the master '{}' any more: {}", settings_->name,
                        to_string(*master.told), master.name, master.watch.why_not()));
  master.told = now;
  const std::lock_guard lock{mutex_};
  place.turn = places_[master.name].turn + 1;
  places_[master.name] = std::move(place);
}

void Masters::wait(SteadyTime until) {
  std::vector<pollfd> all{{.fd = wake_.number(), .events = POLLIN, .revents = 0}};
  std::vector<Line*> lines;
  for (const auto& [key, line] : lines_) {
    const auto wanted = line->wanted();
    if (wanted.fd < 0) continue;
    all.push_back(wanted);
    lines.push_back(line.get());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - system_clock().steady()).count();
  // A line that is to be connected again is tried by then.
  const auto patience = std::clamp<std::int64_t>(left, 0, between_attempts.count());
  if (::poll(all.data(), all.size(), static_cast<int>(patience)) <= 0) return;
  eventfd_t count = 0;
  if (all.front().revents != 0) ::eventfd_read(wake_.number(), &count);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (all[i + 1].revents != 0) lines[i]->ready();
}

Masters::Line& Masters::line(const LineKey& key) {
  auto& line = lines_[key];
  if (!line) line = std::make_unique<Line>(*this, key);
  return *line;
}

void Masters::failed(std::size_t master, std::uint64_t question, std::string_view why) {
  masters_[master].watch.failed(system_clock().steady(), question, why);
}

void Masters::answered(std::size_t master, std::uint64_t question,
                       const std::vector<Value>& replies) {
  masters_[master].watch.answered(system_clock().steady(), question, replies);
}

void Masters::heard(std::string_view message) {
  for (auto& master : masters_) master.watch.heard(system_clock().steady(), message);
}

void Masters::is_back(const topology::Endpoint& sentinel) {
  for (auto& master : masters_) master.watch.is_back(system_clock().steady(), sentinel);
}

}  // namespace sluice::proxy::flow
