/// A client's connection: its requests one by one, its session, its place in the audience.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedded/locked_engine.hpp"
#include "front/own_words.hpp"
#include "front/reply_mode.hpp"
#include "loop/stream.hpp"
#include "port/audience.hpp"
#include "port/users.hpp"
#include "port/wire_reply.hpp"
#include "resp/command_table.hpp"
#include "resp/request_parser.hpp"

namespace sluice::port {

using Words = std::span<const std::string_view>;

class Port;
class PortThread;

class Connection final : public loop::Stream, private engine::Guard {
 public:
  Connection(PortThread& thread, std::unique_ptr<net::Transport> transport, std::uint64_t id);
  ~Connection() override;

  std::uint64_t id() const noexcept { return id_; }
  PortThread& thread() const noexcept { return thread_; }
  const std::string& address() const noexcept { return address_; }
  const engine::Session& session() const noexcept { return session_; }
  SteadyTime last_active() const noexcept { return last_active_; }
  bool is_waiting() const noexcept { return waits_; }
  /// In its thread, of one that waits: CLIENT UNBLOCK.
  void unblock(bool with_error);
  /// Any thread, under the engine's lock: CLIENT KILL.
  void end_soon();
  /// In its thread: what has to be in the log before more is said.
  void await(std::uint64_t position) noexcept { position_ = std::max(position_, position); }
  bool is_listening() const noexcept;
  /// Under the engine's lock. Null: it wants to know of no keys.
  const Tracking* tracking() const noexcept { return tracking_.get(); }

  /// What the server says by itself. Any thread, under the engine's lock.
  void say(std::string_view bytes);
  /// In its thread: what was kept until the log had it.
  void committed();
  /// In its thread: the call that it waits in has its reply, or waits no more with `reply`.
  void served(engine::WaitingCall& call);
  void stop_waiting(std::string_view reply);
  /// In its thread.
  void close() noexcept;
  /// At the next turn: those that are told just now are gone over.
  void end_later();
  void close_later();
  void end_pause();
  /// In its thread: it is told what other threads have said.
  void take_mail();
  /// CLIENT LIST's line. Under the engine's lock.
  std::string describe() const;

 private:
  struct Verb;
  static const Verb* verb_of(const resp::CommandSpec& spec) noexcept;
  static const std::vector<Verb>& verbs();

  // engine::Guard: what its scripts may run
  std::optional<std::string> refusal_of(const resp::CommandSpec& spec, Words words) override;
  // loop::Stream
  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return parser_ ? parser_->missing() : 1; }
  void ended(int error) override;
  void hung_up() override;
  void flushed() override;

  Port& port() const noexcept;
  bool reads() const noexcept {
    return !closing_ && !call_ && !paused_by_client_ && !is_ahead_ && !delayed_;
  }
  std::size_t serve_all(std::string_view bytes);
  void serve(Words words, const resp::CommandSpec* spec);
  bool is_refused(Words words, const resp::CommandSpec* spec, const Verb* verb, WireReply& reply);
  front::Denied denied_to_user(Words words, const resp::CommandSpec* spec);
  void execute(Words words, const resp::CommandSpec* spec, WireReply& reply);
  void pong(Words words, WireReply& reply);
  void wait(Words words, engine::Block&& block);
  void time_out();
  void end_wait() noexcept;
  void note_error(const engine::WaitingCall& call);
  void answer_wait(std::string_view reply);
  void queue(Words words, const resp::CommandSpec* spec, WireReply& reply);
  bool is_paused(const resp::CommandSpec* spec);
  void deliver();
  bool may_speak() const;
  void speak(std::string_view bytes);
  void hear(std::string_view bytes);
  bool leaves_too_much();
  void forget();

  using Serve = void(Words words, WireReply& reply);
  // verbs.cpp
  Serve auth, hello, quit, reset, client_id, client_getname, client_setname, client_setinfo,
      client_list, client_info, client_kill, client_reply, client_pause, client_unpause,
      client_unblock, client_no_touch, acl_cat, acl_list, acl_users, acl_whoami, shutdown;
  bool log_in(std::string_view user, std::string_view password);
  void answer_login(WireReply& reply);
  bool keeps_within_budget(std::size_t unread);
  // tracking.cpp
  Serve client_tracking, client_caching, client_getredir, client_trackinginfo;
  void track(Words words, const resp::CommandSpec& spec);
  // transaction.cpp
  Serve monitor, multi, exec, discard, watch, unwatch;
  // subscription.cpp
  Serve subscribe, psubscribe, ssubscribe, unsubscribe, punsubscribe, sunsubscribe, pubsub_channels,
      pubsub_numsub, pubsub_numpat, pubsub_shardchannels, pubsub_shardnumsub;
  void listen(Listening kind, std::string_view verb, Words names, WireReply& reply);
  void leave(Listening kind, std::string_view verb, Words names, WireReply& reply);
  void tell_names(Listening kind, Words words, WireReply& reply);
  void tell_counts(Listening kind, Words words, WireReply& reply);
  void tell_listening(std::string_view verb, const std::string_view* name, Listening kind,
                      WireReply& reply);
  std::size_t listens_to(Listening kind) const noexcept;

  PortThread& thread_;
  const std::uint64_t id_;
  const std::string address_;
  engine::Session session_{.database = 0, .protocol = 2, .guard = this};
  std::unique_ptr<resp::RequestParser> parser_;  // of a request that is not whole
  std::string kept_;                             // to be sent when the log has it
  std::string mail_;                             // of other threads; under the engine's lock
  std::shared_ptr<engine::WaitingCall> call_;
  loop::Loop::TimerId call_timer_{};
  const SteadyTime begun_;
  SteadyTime slow_since_ = SteadyTime::max();  // beyond the soft limit of its replies
  std::uint64_t position_ = 0;                 // in the log, of what its replies have seen
  // Other threads read these, to list it.
  std::atomic<SteadyTime> last_active_;
  std::atomic<const resp::CommandSpec*> last_command_{nullptr};
  std::atomic<bool> waits_{false};
  std::atomic<int> in_queue_{-1};  // commands of a transaction
  front::OwnWords words_;          // changed under the engine's lock
  std::atomic<User*> user_;        // null: it has not logged in
  std::uint8_t failed_logins_ = 0;
  std::uint32_t budgeted_ = 0;  // bytes that it keeps as a stranger
  bool closing_ = false;
  bool is_ahead_ = false;  // it reads its replies too slowly
  bool paused_by_client_ = false;
  bool delayed_ = false;  // the answer to a login waits
  front::ReplyMode reply_mode_;

  bool in_transaction_ = false;
  bool spoilt_ = false;
  std::vector<std::vector<std::string>> queued_;
  Watching watching_;
  std::unique_ptr<Tracking> tracking_;
  bool is_caching_new_ = false;  // CLIENT CACHING was the command before
  std::set<std::string, std::less<>> listening_[3];
};

}  // namespace sluice::port
