#include "proxy/flow/asking_lines.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <system_error>
#include <tuple>
#include <utility>

#include "net/socket.hpp"
#include "net/transport.hpp"
#include "proxy/flow/pool.hpp"
#include "resp/reply_parser.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"
#include "topology/sentinel_view.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

constexpr auto between_attempts = 200ms;
constexpr auto shortest_silence = 1s;  // after which a node that owes replies is connected to anew
constexpr auto kept_for = 10s;         // a line that nothing is asked by
constexpr std::size_t most_lines = 1000;
/// A map of 16,384 ranges has less than 2 MiB.
constexpr resp::ReplyLimits limits{
    .bulk = 16 << 20, .line = 64 << 10, .items = 1 << 20, .depth = 16, .whole = 64 << 20};

bool is_text(const Value& value, std::string_view text) {
  return value.is_text() && value.as_text() == text;
}

}  // namespace

/// One connection to a Sentinel or a server, by which questions go one after another.
class AskingLines::Line {
 public:
  Line(AskingLines& owner, Key key)
      : owner_(owner),
        key_(std::move(key)),
        failed_([this](const Error& why) { tls_failure_ = why.message(); }) {}

  void ask(SteadyTime now, const std::vector<std::vector<std::string>>& commands, Answer answer,
           const std::string& certified) {
    asked_ = now;
    certified_ = certified;
    open(now);
    if (!socket_ && !awaits_name_) return answer({}, why_not_);
    if (questions_.empty()) heard_ = now;
    for (const auto& command : commands) say({command.begin(), command.end()});
    questions_.push_back({std::move(answer), commands.size(), {}});
  }
  /// Keeps it connected.
  void listen(SteadyTime now) {
    asked_ = now;
    open(now);
  }
  /// Its name may be known now, or it has been silent for too long.
  void go_on(SteadyTime now) {
    if (awaits_name_) return open(now);
    const auto silence =
        std::max<std::chrono::nanoseconds>(owner_.settings_->connect_timeout, shortest_silence);
    if (socket_ && !questions_.empty() && heard_ + silence <= now) fail("it says nothing");
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
        return fail(std::generic_category().message(error));
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
    for (const auto& asked : std::exchange(questions_, {})) asked.answer({}, why_not_);
  }

 private:
  struct Asked {
    Answer answer;
    std::size_t left;
    std::vector<Value> replies;
  };

  void say(const std::vector<std::string_view>& words) { resp::append_command(out_, words); }

  /// A question waits while the name of the node is being looked up.
  void open(SteadyTime now) {
    if (socket_ || (now < retry_ && !awaits_name_)) return;
    const auto found = owner_.addresses_of(key_.to);
    awaits_name_ = !found;
    if (!found) return;
    retry_ = now + between_attempts;
    if (!*found) return fail(std::string{found->error().message()});
    heard_ = now;
    connect((*found)->at(attempts_++ % (*found)->size()));
  }
  void connect(const net::Address& address) {
    try {
      auto socket = net::Socket::start_connect(address);
      const bool is_server = key_.use == Use::asks_server;
      const auto& tls = is_server ? owner_.tls_->server : owner_.tls_->sentinel;
      const auto& settings = *owner_.settings_;
      const auto& name =
          (is_server ? settings.server_tls : settings.tls_to_sentinels()).server_name;
      const auto& named = certified_.empty() ? key_.to.host : certified_;
      socket_ = tls ? tls->connect(std::move(socket), name.empty() ? named : name, failed_)
                    : std::make_unique<net::Socket>(std::move(socket));
      greet();
    } catch (const Error& error) {
      fail(std::string{error.message()});
    } catch (const std::system_error& error) {
      fail(error.code().message());
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
    const auto questions = std::exchange(out_, {});
    if (!password.empty()) {
      if (user.empty())
        say({"AUTH", password});
      else
        say({"AUTH", user, password});
      ++handshake_;
    }
    if (key_.use == Use::hears_sentinel) say({"SUBSCRIBE", topology::switch_channel});
    out_ += questions;
  }

  void write() {
    while (sent_ < out_.size()) {
      const auto transfer = socket_->write_some(std::string_view{out_}.substr(sent_));
      if (transfer.outcome == net::Transfer::Outcome::would_block) return;
      if (transfer.is_refused()) break;  // why, read() finds
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
      fail(std::string{error.message()});
    }
  }
  void close_by(const net::Transfer& transfer) {
    fail(transfer.error == 0 ? "it closed the connection"
                             : std::generic_category().message(transfer.error));
  }
  /// Closes, and tells why, unless that was the last that was told of it.
  void fail(std::string why) {
    close(std::move(why));
    if (key_.use == Use::hears_sentinel || why_not_ == told_) return;
    told_ = why_not_;
    log(LogLevel::warning, fmt::format("pool '{}': {} cannot be asked: {}", owner_.settings_->name,
                                       to_string(key_.to), told_));
  }

  void take(Value value) {
    heard_ = system_clock().steady();
    if (handshake_ > 0) {
      --handshake_;
      if (value.is_error() && !topology::is_without_password(value.as_text()))
        fail("it refuses AUTH: " + value.as_text());
      return;
    }
    if (key_.use == Use::hears_sentinel) return hear(value);
    if (questions_.empty()) return fail("it sent a reply to no question");
    told_.clear();
    Asked& asked = questions_.front();
    asked.replies.push_back(std::move(value));
    if (--asked.left > 0) return;
    const auto done = std::move(asked);
    questions_.pop_front();
    done.answer(done.replies, {});
  }
  void hear(const Value& push) {
    if (push.is_error()) return close(push.as_text());
    const auto& items = push.as_items();
    if (items.size() != 3) return;
    if (is_text(items[0], "subscribe")) owner_.hearer_.is_back(key_.to);
    if (is_text(items[0], "message") && items[2].is_text())
      owner_.hearer_.heard(items[2].as_text());
  }

  AskingLines& owner_;
  const Key key_;
  const net::TlsFailure failed_;
  std::string tls_failure_;
  std::unique_ptr<net::Transport> socket_;
  bool awaits_name_ = false;
  bool is_connected_ = false;
  std::size_t handshake_ = 0;  // replies to AUTH that have not come
  std::size_t attempts_ = 0;
  SteadyTime retry_{};
  SteadyTime asked_{};
  SteadyTime heard_{};  // when it last spoke, or was asked while nothing was under way
  std::string certified_;
  std::string why_not_ = "it is still being connected";
  std::string told_;  // of it in the log, since it last answered
  std::string out_;
  std::size_t sent_ = 0;
  std::deque<Asked> questions_;
  resp::ReplyParser parser_{limits};
};

AskingLines::AskingLines(std::shared_ptr<const PoolSettings> settings,
                         std::shared_ptr<const PoolTls> tls, Resolver& resolver, Hearer hearer)
    : settings_(std::move(settings)),
      tls_(std::move(tls)),
      hearer_(std::move(hearer)),
      wake_(
          std::make_shared<const Descriptor>(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      names_(resolver, [wake = wake_] { ::eventfd_write(wake->number(), 1); }) {}

AskingLines::~AskingLines() = default;

bool AskingLines::are_alike(const PoolSettings& one, const PoolSettings& other) {
  const auto what = [](const PoolSettings& settings) {
    return std::tie(settings.sentinels, settings.sentinel_user, settings.sentinel_password,
                    settings.sentinel_tls, settings.cluster, settings.server_user,
                    settings.server_password, settings.redis_auth, settings.server_tls);
  };
  return what(one) == what(other);
}

void AskingLines::ask(const Key& key, const std::vector<std::vector<std::string>>& commands,
                      Answer answer, const std::string& certified) {
  line(key).ask(system_clock().steady(), commands, std::move(answer), certified);
}

void AskingLines::listen(const Key& key) { line(key).listen(system_clock().steady()); }

std::optional<Resolver::Found> AskingLines::addresses_of(const topology::Endpoint& node) {
  return names_.find({.host = node.host, .port = node.port, .unix_path = {}});
}

void AskingLines::wake() noexcept { ::eventfd_write(wake_->number(), 1); }

void AskingLines::forget_lines(SteadyTime now) {
  std::erase_if(lines_, [&](const auto& one) {
    const bool is_old = lines_.size() > most_lines || one.second->asked() + kept_for <= now;
    if (is_old) one.second->close("it is not needed any more");
    return is_old;
  });
}

void AskingLines::wait(SteadyTime until) {
  forget_lines(system_clock().steady());
  std::vector<pollfd> all{{.fd = wake_->number(), .events = POLLIN, .revents = 0}};
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
  if (all.front().revents != 0) ::eventfd_read(wake_->number(), &count);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (all[i + 1].revents != 0) lines[i]->ready();
  const auto now = system_clock().steady();
  for (const auto& [key, line] : lines_) line->go_on(now);
}

AskingLines::Line& AskingLines::line(const Key& key) {
  auto& line = lines_[key];
  if (!line) line = std::make_unique<Line>(*this, key);
  return *line;
}

}  // namespace sluice::proxy::flow
