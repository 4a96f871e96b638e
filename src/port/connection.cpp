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
  if (closing_) return close_later(), bytes.size();
  if ((!user_ || budgeted_ != 0) && !keeps_within_budget(bytes.size() - used)) return close(), 0;
  if (paused_by_client_ && has_hung_up()) return close(), 0;
  if (!reads()) pause();
  return used;
}

std::size_t Connection::serve_all(std::string_view bytes) {
  using State = resp::RequestParser::State;
  std::size_t used = 0;
  while (used < bytes.size() && reads()) {
    auto& parser = parser_ ? parser_ : thread_.parser();
    parser->set_authenticated(user_ != nullptr);
    const auto state = parser->parse(bytes.substr(used));
    if (state == State::incomplete) {
      if (!parser_) parser_ = std::exchange(thread_.parser(), thread_.new_parser());
      break;
    }
    if (state == State::bad) {
      WireReply{thread_.out(), session_}.error("ERR " + parser->error());
      parser = thread_.new_parser();
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
      if (thread_.out().size() > most_ahead) is_ahead_ = true;
    }
    parser_.reset();
    used += size;
  }
  return used;
}

void Connection::serve(Words words, const resp::CommandSpec* spec) {
  if (is_listening() || tracking_) take_mail();
  auto& out = thread_.out();
  const auto before = out.size();
  WireReply reply{out, session_};
  const auto* const verb = spec ? verb_of(*spec) : nullptr;
  last_command_ = spec;
  const bool is_run = !is_refused(words, spec, verb, reply);
  if (is_run) {
    const bool is_secret = !spec || spec->has(resp::flag_admin) || spec->has(resp::flag_no_auth);
    if (port().audience().has_monitors() && !is_secret) {
      static_cast<void>(thread_.section());
      port().audience().tell_monitors(*this, words, port().engine().now_us());
    }
    if (in_transaction_ && !(verb && verb->ends_queue))
      queue(words, spec, reply);
    else if (verb)
      (this->*verb->serve)(words, reply);
    else
      execute(words, spec, reply);
  }
  const bool is_error = out.size() > before && out[before] == '-';
  if (is_error)
    thread_.section().engine().note_error(spec, is_run && spec && spec->arity_fits(words.size()),
                                          std::string_view{out}.substr(before + 1));
  const bool is_push = verb && verb->answers_by_push() && !is_error;
  if (reply_mode_.is_muted() && !is_push) out.resize(before);
  if (!call_) reply_mode_.served();
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
  if (has_hung_up()) return close_later();  // nobody would have what it waits for
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

void Connection::answer_wait(std::string_view reply) {
  end_wait();
  if (!reply_mode_.is_muted()) kept_ += reply;
  reply_mode_.served();
  committed();
}

void Connection::note_error(const engine::WaitingCall& call) {
  const std::vector<std::string_view> words{call.words.begin(), call.words.end()};
  engine::LockedEngine::Section section{port().engine()};
  section.engine().note_error(resp::find_command(words), true, call.reply.as_text());
}

void Connection::served(engine::WaitingCall& call) {
  if (call_.get() != &call) return;
  std::string out;
  resp::ReplyWriter{out, session_.protocol}.value(call.reply);
  const auto wrote = call.wrote;
  if (call.reply.is_error()) note_error(call);
  thread_.await_commit(*this, call.position);
  answer_wait(out);
  if (wrote) port().opened().look_after_log(true);
  if (!closed() && reads()) resume();
}

void Connection::stop_waiting(std::string_view reply) {
  if (!call_ || !thread_.section().stop_waiting(*call_)) return thread_.leave();
  answer_wait(reply);
  thread_.leave();
  if (!closed() && reads()) resume();
}

/// What may write is asked under the engine's lock, as CLIENT PAUSE is: once that is answered no
/// thread executes what it had let through before.
bool Connection::is_paused(const resp::CommandSpec* spec) {
  const bool runs_a_script = spec && spec->has(resp::flag_movablekeys);
  const bool may_write = !spec || spec->has(resp::flag_write) || spec->name == "exec" ||
                         (runs_a_script && !spec->has(resp::flag_readonly));
  if (may_write && user_) static_cast<void>(thread_.section());
  if (!port().is_paused(loop_.now())) return false;
  if (spec && spec->name == "client|unpause") return false;
  return !port().pauses_writes_alone() || may_write;
}

void Connection::end_pause() {
  if (!std::exchange(paused_by_client_, false)) return;
  if (reads()) resume();
}

// --- replies ---

bool Connection::may_speak() const {
  return !closed() && !delayed_ && thread_.is_committed(position_);
}

void Connection::speak(std::string_view bytes) {
  write(bytes);
  if (leaves_too_much()) return end_later();  // not at once: others are being told
  if (unsent() > most_ahead) is_ahead_ = true;
}

bool Connection::leaves_too_much() {
  const auto& settings = port().settings();
  const auto& limit = is_listening() ? settings.of_listeners : settings.of_clients;
  if (limit.hard != 0 && unsent() > limit.hard) return true;
  if (limit.soft == 0 || unsent() <= limit.soft) {
    slow_since_ = SteadyTime::max();
    return false;
  }
  slow_since_ = std::min(slow_since_, loop_.now());
  return loop_.now() - slow_since_ > limit.patience;
}

/// The replies to the requests that were in hand.
void Connection::deliver() {
  auto& out = thread_.out();
  if (out.empty()) return;
  if (kept_.empty() && may_speak()) {
    speak(out);
  } else {
    kept_ += out;
    committed();
  }
  out.clear();
}

void Connection::committed() {
  if (!kept_.empty() && may_speak()) speak(std::exchange(kept_, {}));
}

/// What other threads say waits until this one has it, before a later reply.
void Connection::say(std::string_view bytes) {
  const bool is_in_hand = thread_.is_here() && thread_.in_hand() == this;
  const bool waits = !thread_.is_here() || (is_in_hand && reply_mode_.is_muted());
  if (!waits) {
    if (!mail_.empty()) hear(std::exchange(mail_, {}));
    return hear(bytes);
  }
  if (mail_.empty()) thread_.fetch_mail(id_);
  mail_ += bytes;
}

void Connection::take_mail() {
  static_cast<void>(thread_.section());
  if (!mail_.empty()) hear(std::exchange(mail_, {}));
}

void Connection::hear(std::string_view bytes) {
  if (closing_) return;
  if (thread_.in_hand() == this) {
    thread_.out() += bytes;
  } else {
    kept_ += bytes;
    committed();
  }
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
  if (call_ || paused_by_client_) close();  // it reads nothing while it waits
}

void Connection::end_later() {
  if (!std::exchange(closing_, true)) thread_.close_soon(id_);
}

/// When all is written.
void Connection::close_later() {
  closing_ = true;
  pause();
  loop_.flush_later(*this);
}

/// What others hold of it. Under the engine's lock.
void Connection::forget() {
  auto& audience = port().audience();
  for (const auto kind : {Listening::channel, Listening::pattern, Listening::shard})
    for (const auto& name : listening_[static_cast<std::size_t>(kind)])
      audience.leave(*this, kind, name);
  for (auto& names : listening_) names.clear();
  audience.unwatch(watching_);
  audience.end_monitor(*this);
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
