#include "port/connection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "engine/core/command.hpp"
#include "net/socket.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "port/verbs.hpp"

namespace sluice::port {
namespace {

// A client that leaves so much unread is asked for no more requests until it has read it.
constexpr std::size_t most_ahead = std::size_t{1} << 20;
// What a subscriber may leave unread: as Redis's client-output-buffer-limit of pubsub.
constexpr std::size_t most_untold = std::size_t{32} << 20;

/// A call that has to wait, of a connection; the connection may be gone when it is served.
class PortCall final : public engine::WaitingCall, public std::enable_shared_from_this<PortCall> {
 public:
  PortCall(Words words, PortThread& thread, std::uint64_t id)
      : WaitingCall({words.begin(), words.end()}, nullptr), thread_(thread), id_(id) {}

  void served() override { thread_.take_served(id_, shared_from_this()); }

 private:
  PortThread& thread_;
  const std::uint64_t id_;
};

}  // namespace

Connection::Connection(PortThread& thread, std::unique_ptr<net::Transport> transport,
                       std::uint64_t id)
    : loop::Stream(thread.loop()),
      thread_(thread),
      id_(id),
      address_(net::peer_of(transport->descriptor())),
      begun_(thread.loop().now()),
      last_active_(begun_),
      user_(thread.users().newcomer()) {
  attach(std::move(transport));
}

Connection::~Connection() = default;

Port& Connection::port() const noexcept { return thread_.port(); }

bool Connection::is_listening() const noexcept {
  return std::ranges::any_of(listening_, [](const auto& names) { return !names.empty(); });
}

// --- requests ---

std::size_t Connection::consume(std::string_view bytes) {
  last_active_ = loop_.now();
  thread_.take_in_hand(this);
  const auto used = serve_all(bytes);
  thread_.take_in_hand(nullptr);
  thread_.leave();
  deliver();
  if (closed()) return 0;
  if ((!user_ || budgeted_ != 0) && !keeps_within_budget(bytes.size() - used)) return close(), 0;
  if (!reads() && !closing_) pause();
  return closing_ ? bytes.size() : used;
}

std::size_t Connection::serve_all(std::string_view bytes) {
  using State = resp::RequestParser::State;
  std::size_t used = 0;
  while (used < bytes.size() && reads()) {
    auto& parser = parser_ ? parser_ : thread_.parser();
    parser->set_authenticated(user_ != nullptr);
    const auto state = parser->parse(bytes.substr(used));
    if (state == State::incomplete) {
      if (!parser_)
        parser_ = std::exchange(thread_.parser(), std::make_unique<resp::RequestParser>());
      break;
    }
    if (state == State::bad) {
      WireReply{thread_.out(), session_}.error("ERR " + parser->error());
      parser = std::make_unique<resp::RequestParser>();
      closing_ = true;
      break;
    }
    const auto size = parser->size();
    if (const auto words = parser->words(); !words.empty()) {
      const auto* const spec = resp::find_command(words);
      if (is_paused(spec)) {
        paused_by_client_ = true;
        break;  // it comes again
      }
      serve(words, spec);
    }
    parser_.reset();
    used += size;
  }
  return used;
}

void Connection::serve(Words words, const resp::CommandSpec* spec) {
  auto& out = thread_.out();
  const auto before = out.size();
  WireReply reply{out, session_};
  last_command_ = spec;
  const auto* const verb = spec ? verb_of(*spec) : nullptr;
  if (!is_refused(words, spec, verb, reply)) {
    if (in_transaction_ && !(verb && verb->ends_queue))
      queue(words, spec, reply);
    else if (verb)
      (this->*verb->serve)(words, reply);
    else
      execute(words, spec, reply);
  }
  if (reply_mode_.is_muted()) out.resize(before);
  reply_mode_.served();
}

bool Connection::is_refused(Words words, const resp::CommandSpec* spec, const Verb* verb,
                            WireReply& reply) {
  if (!user_ && !(spec && spec->has(resp::flag_no_auth))) {
    reply.error("NOAUTH Authentication required.");
    return true;
  }
  if (session_.protocol == 2 && is_listening() && !(verb && verb->while_listening) &&
      !(spec && spec->name == "ping")) {
    reply.error(
        fmt::format("ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
                    "PING / QUIT / RESET are allowed in this context",
                    spec ? spec->name : engine::shown(words[0])));
    return true;
  }
  const bool fits = spec && spec->arity_fits(words.size());
  if (verb && !fits) {
    reply.error(engine::wrong_arity(spec->name));
  } else if (const auto denied = denied_to_user(words, fits ? spec : nullptr);
             denied != front::Denied::nothing) {
    reply.error(front::refusal_of(denied, spec->name));
  } else {
    return false;
  }
  spoilt_ = in_transaction_;
  return true;
}

front::Denied Connection::denied_to_user(Words words, const resp::CommandSpec* spec) {
  const User* const user = user_;
  if (!spec || !user || !user->rights || spec->has(resp::flag_no_auth))
    return front::Denied::nothing;
  return user->rights->check(*spec, words);
}

std::optional<std::string> Connection::refusal_of(const resp::CommandSpec& spec, Words words) {
  const auto denied = denied_to_user(words, &spec);
  if (denied == front::Denied::nothing) return std::nullopt;
  return "NOPERM ACL failure in script: " + front::refusal_of(denied, spec.name).substr(7);
}

void Connection::execute(Words words, const resp::CommandSpec* spec, WireReply& reply) {
  if (is_listening() && session_.protocol == 2) return pong(words, reply);
  auto executed = thread_.section().execute(session_, words, spec, reply);
  if (executed.block) return wait(words, *std::move(executed.block));
  if (tracking_ && spec) track(words, *spec);
  thread_.await_commit(*this, executed.position);
  if (executed.wrote) port().opened().look_after_log(true);
}

/// PING of a client that listens in RESP2, in the form of a message.
void Connection::pong(Words words, WireReply& reply) {
  if (words.size() > 2) return reply.error(engine::wrong_arity("ping"));
  reply.array(2);
  reply.bulk("pong");
  reply.bulk(words.size() == 2 ? words[1] : "");
}

// --- waiting ---

void Connection::wait(Words words, engine::Block&& block) {
  const auto call = std::make_shared<PortCall>(words, thread_, id_);
  call->session = session_;
  const auto timeout = block.timeout_ms;
  thread_.section().wait(call, std::move(block));
  call_ = call;
  waits_ = true;
  if (timeout == 0) return;
  call_timer_ = loop_.after(std::chrono::milliseconds{timeout}, [this] { time_out(); });
}

void Connection::time_out() {
  const auto* const spec = resp::find_command(call_->words.front());
  const bool one = spec->name == "blmove" || spec->name == "brpoplpush";
  std::string out;
  WireReply reply{out, session_};
  one ? reply.null() : reply.null_array();
  stop_waiting(out);
}

void Connection::unblock(bool with_error) {
  if (!call_) return;
  if (with_error)
    stop_waiting("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  else
    time_out();
}

void Connection::end_wait() noexcept {
  loop_.cancel(call_timer_);
  call_.reset();
  waits_ = false;
}

void Connection::served(engine::WaitingCall& call) {
  if (call_.get() != &call) return;
  std::string out;
  resp::ReplyWriter{out, session_.protocol}.value(call.reply);
  const auto wrote = call.wrote;
  thread_.await_commit(*this, call.position);
  end_wait();
  kept_ += out;
  deliver();
  if (wrote) port().opened().look_after_log(true);
  if (!closed() && reads()) resume();
}

void Connection::stop_waiting(std::string_view reply) {
  if (!call_ || !thread_.section().stop_waiting(*call_)) return thread_.leave();
  end_wait();
  kept_ += reply;
  thread_.leave();
  deliver();
  if (!closed() && reads()) resume();
}

bool Connection::is_paused(const resp::CommandSpec* spec) {
  if (!port().is_paused(loop_.now())) return false;
  if (spec && spec->name == "client|unpause") return false;
  return !port().pauses_writes_alone() || !spec || spec->has(resp::flag_write) ||
         spec->has(resp::flag_movablekeys) || spec->name == "exec";
}

void Connection::end_pause() {
  if (!std::exchange(paused_by_client_, false)) return;
  if (reads()) resume();
}

// --- replies ---

void Connection::deliver() {
  auto& out = thread_.out();
  if (thread_.in_hand() == nullptr && !out.empty()) {
    kept_ += out;
    out.clear();
  }
  committed();
}

void Connection::committed() {
  if (closed() || delayed_ || kept_.empty() || !thread_.is_committed(position_)) return;
  write(kept_);
  kept_.clear();
  if (is_listening() && unsent() > most_untold) return end_later();  // it is told just now
  if (unsent() > most_ahead) is_ahead_ = true;
}

void Connection::say(std::string_view bytes) {
  if (!thread_.is_here()) return thread_.mail(id_, std::string{bytes});
  if (thread_.in_hand() == this)
    thread_.out() += bytes;
  else
    hear(bytes);
}

void Connection::hear(std::string_view bytes) {
  if (reply_mode_.is_muted()) return;
  kept_ += bytes;
  committed();
}

void Connection::flushed() {
  if (std::exchange(is_ahead_, false) && reads()) resume();
  if (closing_ && kept_.empty()) close();
}

/// What strangers keep of the server's memory, all of them together, is bounded. False: it is too
/// much.
bool Connection::keeps_within_budget(std::size_t unread) {
  const bool counts = !user_ && !closed();
  const auto keeps = counts ? std::max(unread, input_memory()) + unsent() + kept_.size() : 0;
  if (!port().strangers().take(static_cast<std::int64_t>(keeps) - std::int64_t{budgeted_}))
    return false;
  budgeted_ = static_cast<std::uint32_t>(keeps);
  return true;
}

// --- the end ---

void Connection::ended(int) { close(); }

void Connection::hung_up() {
  if (call_) close();  // it reads nothing while it waits
}

void Connection::close_later() {
  closing_ = true;
  pause();
  loop_.flush_later(*this);
}

void Connection::end_later() {
  closing_ = true;
  thread_.loop().post([&thread = thread_, id = id_] {
    if (Connection* const connection = thread.find(id)) connection->close();
  });
}

/// What others hold of it. Under the engine's lock.
void Connection::forget() {
  auto& audience = port().audience();
  for (const auto kind : {Listening::channel, Listening::pattern, Listening::shard})
    for (const auto& name : listening_[static_cast<std::size_t>(kind)])
      audience.leave(*this, kind, name);
  for (auto& names : listening_) names.clear();
  audience.unwatch(watching_);
  if (tracking_) audience.trackers().end(*this);
  tracking_.reset();
  queued_.clear();
  in_queue_ = -1;
  in_transaction_ = spoilt_ = false;
}

void Connection::close() noexcept {
  if (closed()) return;
  auto& section = thread_.section();
  if (call_) {
    section.stop_waiting(*call_);
    end_wait();
  }
  forget();
  port().connections().erase(id_);
  if (thread_.in_hand() == nullptr) thread_.leave();
  detach();
  static_cast<void>(keeps_within_budget(0));
  thread_.remove(*this);
}

}  // namespace sluice::port
