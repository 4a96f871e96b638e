#include "proxy/flow/session/fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/redis/readers.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

// The old home stands still while it waits for the new one.
constexpr std::string_view migrate_timeout = "500";  // ms
constexpr auto most_tried = 3s;
constexpr auto most_held = 10s;
constexpr auto between_attempts = 20ms;

/// What the old home says when the key is still there, and may be let go later.
bool may_pass(std::string_view reply) noexcept {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"-IOERR", "-LOADING", "-BUSY ", "-MASTERDOWN",
                                              "-NOREPLICAS", "-TRYAGAIN"},
      [reply](std::string_view trouble) { return reply.starts_with(trouble); });
}

/// Keys that no word names would be asked for where they are not; or all keys are concerned, and
/// those on their way would be left out.
bool is_unfit(std::string_view command, Words words) {
  static constexpr std::array<std::string_view, 5> unfit{"flushall", "flushdb", "swapdb", "move",
                                                         "migrate"};
  if (std::ranges::find(unfit, command) != unfit.end()) return true;
  if (command == "copy")
    return std::ranges::any_of(words, [](auto word) { return resp::is_word(word, "db"); });
  if (command != "sort" && command != "sort_ro") return false;
  return std::ranges::any_of(
      words, [](auto word) { return resp::is_word(word, "by") || resp::is_word(word, "get"); });
}

}  // namespace

Fetch::Outcome Fetch::bring(Words words, std::string_view bytes, const Plan& plan, bool alone) {
  if (std::exchange(is_over_, false)) return answer_.empty() ? Outcome::here : Outcome::answered;
  answer_.clear();
  if (plan.route == Route::refused || plan.route == Route::local || plan.route == Route::close)
    return Outcome::here;
  if (const auto command = pool_.protocol().command_name(plan.command); is_unfit(command, words)) {
    answer_ =
        fmt::format("-ERR '{}' is not served so while keys move to other servers\r\n", command);
    return Outcome::answered;
  }
  auto& servers = pool_.servers();
  legs_.clear();
  for (const auto at : plan.keys) {
    Server* const before = servers.elsewhere(words[at]);
    Server* const now = before ? servers.home_of(words[at]) : nullptr;
    if (!now) continue;
    auto& its = leg(*before, *now);
    its.keys.emplace_back(words[at]);
    its.left.push_back(false);
  }
  if (legs_.empty()) return Outcome::here;
  const bool can_be_read =
      alone && plan.read_only && plan.route == Route::one && plan.keys.size() == 1;
  read_ = can_be_read ? bytes : std::string_view{};
  is_waiting_ = true;
  client_.wait_for_keys();
  deadline_ = pool_.loop().now() + most_tried;
  if (pool_.settings().move->phase == RingMove::Phase::held)
    timer_ = pool_.loop().after(most_held, [this] { end_hold(); });
  else
    ask();
  return Outcome::waits;
}

Fetch::Leg& Fetch::leg(Server& from, Server& to) {
  const auto same = std::ranges::find_if(
      legs_, [&](const Leg& one) { return one.from == &from && one.to == &to; });
  return same != legs_.end() ? *same : legs_.emplace_back(Leg{&from, &to, {}, {}});
}

std::string Fetch::migrate(const Leg& leg) const {
  const auto& to = leg.to->settings().endpoint;
  const auto& settings = pool_.settings();
  const auto port = std::to_string(to.port);
  const auto db = std::to_string(client_.mode().db);
  std::vector<std::string_view> words{"MIGRATE",
                                      to.host,
                                      port,
                                      "",
                                      db,
                                      migrate_timeout,
                                      "REPLACE",
                                      "AUTH2",
                                      settings.server_user,
                                      settings.server_password,
                                      "KEYS"};
  for (std::size_t key = 0; key < leg.keys.size(); ++key)
    if (!leg.left[key]) words.push_back(leg.keys[key]);
  std::string bytes;
  resp::append_command(bytes, words);
  return bytes;
}

/// How large the keys are; and of those that are known to be small, that they move.
void Fetch::ask() {
  timer_ = {};
  trouble_.clear();
  may_pass_ = true;
  reads_ = false;
  asks_.clear();
  missing_ = 1;  // for this loop: a request may fail before its end
  std::string bytes;
  for (std::size_t at = 0; at < legs_.size(); ++at) {
    const auto& leg = legs_[at];
    if (leg.is_weighed) {
      ask(Ask::What::migrate, at, 0, migrate(leg));
      continue;
    }
    for (std::size_t key = 0; key < leg.keys.size(); ++key) {
      if (leg.left[key]) continue;
      bytes.clear();
      resp::append_command(bytes, {"MEMORY", "USAGE", leg.keys[key]});
      ask(Ask::What::size, at, key, bytes);
    }
  }
  pool_.counters().fetches.add();
  if (--missing_ == 0) end_round();
}

void Fetch::ask(Ask::What what, std::size_t leg, std::size_t key, std::string_view bytes) {
  Request& request = pool_.requests().make();
  request.receiver = this;
  request.place = static_cast<std::uint32_t>(asks_.size());
  note_key(request, legs_[leg].keys[key]);
  asks_.push_back({what, leg, key, &request});
  ++missing_;
  legs_[leg].from->upstream(client_.mode(), client_.id()).send(request, bytes);
}

/// In one MULTI with EXISTS: if the key has gone in the meantime, the reply is not taken.
void Fetch::read_at_old_home() {
  trouble_.clear();
  reads_ = true;
  asks_.clear();
  missing_ = 1;
  std::string bytes;
  resp::append_command(bytes, {"EXISTS", legs_[0].keys[0]});
  ask(Ask::What::opening, 0, 0, "*1\r\n$5\r\nMULTI\r\n");
  ask(Ask::What::opening, 0, 0, bytes);
  ask(Ask::What::opening, 0, 0, read_);
  ask(Ask::What::read, 0, 0, "*1\r\n$4\r\nEXEC\r\n");
  if (--missing_ == 0) end_round();
}

void Fetch::replied(Request& request, std::string_view reply) {
  take(asks_[request.place], reply);
  arrived(request);
}

void Fetch::failed(Request& request, Failure failure) {
  trouble_ = pool_.protocol().reply_for(failure);
  arrived(request);
}

void Fetch::take(const Ask& ask, std::string_view reply) {
  auto& leg = legs_[ask.leg];
  if (ask.what == Ask::What::read) return take_read(reply);
  if (reply.starts_with('-')) {
    trouble_ = reply;
    may_pass_ &= may_pass(reply);
  } else if (ask.what == Ask::What::migrate) {
    leg.left.assign(leg.left.size(), true);  // OK, or NOKEY
  } else if (ask.what == Ask::What::size) {
    const auto size = element_at(reply);
    if (size.type != ':')
      leg.left[ask.key] = true;
    else if (size.number > RingMove::large_key)
      trouble_ = "-ERR it is large, and is copied piece by piece: ask again\r\n";
  }
}

/// "[1, what it says]": the key was there.
void Fetch::take_read(std::string_view reply) {
  static constexpr std::string_view there = "*2\r\n:1\r\n";
  if (reply.starts_with(there))
    answer_ = reply.substr(there.size());
  else if (reply.starts_with('-'))
    trouble_ = reply;
}

void Fetch::arrived(Request& request) {
  asks_[request.place].request = nullptr;
  pool_.requests().drop(request);
  if (--missing_ == 0) end_round();
}

void Fetch::end_round() {
  if (!answer_.empty()) return finish();
  if (trouble_.empty()) {
    for (auto& leg : legs_) leg.is_weighed = !reads_;
    std::erase_if(
        legs_, [](const Leg& leg) { return std::ranges::find(leg.left, false) == leg.left.end(); });
    return legs_.empty() ? finish() : ask();
  }
  if (!reads_ && !read_.empty()) return read_at_old_home();
  if (!may_pass_ || pool_.loop().now() >= deadline_) return refuse(trouble_);
  for (auto& leg : legs_) leg.is_weighed = false;
  timer_ = pool_.loop().after(between_attempts, [this] { ask(); });
}

void Fetch::end_hold() { refuse("-ERR the command that moves it says nothing: run it again\r\n"); }

void Fetch::refuse(std::string_view why) {
  pool_.counters().failed_fetches.add();
  answer_ = fmt::format(
      "-ERR nothing was done: a key of it moves to another server and did not get there: {}",
      why.substr(1));
  finish();
}

void Fetch::finish() {
  timer_ = {};
  is_over_ = true;
  is_waiting_ = false;
  client_.end_wait_for_keys();
}

void Fetch::restart() {
  forget();
  is_over_ = false;
  if (std::exchange(is_waiting_, false)) client_.end_wait_for_keys();
}

void Fetch::forget() noexcept {
  pool_.loop().cancel(timer_);
  timer_ = {};
  for (auto& ask : asks_)
    if (ask.request) ask.request->receiver = nullptr;  // its upstream drops it with the reply
  asks_.clear();
  legs_.clear();
}

bool ClientSession::has_keys_at_home(Words words, std::string_view bytes, const Plan& plan) {
  if (!fetch_) fetch_ = std::make_unique<Fetch>(client_);
  const auto outcome = fetch_->bring(words, bytes, plan, !transaction_);
  if (outcome != Fetch::Outcome::answered) return outcome == Fetch::Outcome::here;
  if (is_in_transaction()) spoil();
  answer(fetch_->answer());
  return false;
}

void ClientSession::note_move() {
  const auto& move = pool().settings().move;
  if (move && move->phase == RingMove::Phase::held) spoil();  // its keys may go, and its connection
  if (fetch_) fetch_->restart();
  if (!move) fetch_.reset();
}

}  // namespace sluice::proxy::flow
