#include "proxy/flow/session/side_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "resp/command_table.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

constexpr auto between_attempts = 20ms;
/// A command that was refused after so long was taken before.
constexpr auto has_waited = 1s;

std::vector<std::string> keys_of(Words words, const Plan& plan) {
  std::vector<std::string> keys;
  for (const auto at : plan.keys) keys.emplace_back(words[at]);
  return keys;
}

}  // namespace

SideRequest::SideRequest(Client& client, const Plan& plan)
    : pool_(client.pool()),
      whole_(client.enqueue(plan)),
      mode_(client.mode()),
      client_(client.id()) {}

void SideRequest::ask(Server& server, std::string_view bytes, std::uint32_t place,
                      std::size_t parts, std::optional<std::string_view> key) {
  Request& request = pool_.requests().make();
  request.receiver = this;
  request.place = place;
  request.expected = whole_.expected / static_cast<std::uint32_t>(parts);
  request.command = whole_.command;
  request.read_only = whole_.read_only;
  request.detours = key && pool_.settings().sends_again();
  note_key(request, key.value_or(""));
  server.upstream(mode_, client_).send(request, bytes);
}

bool SideRequest::may_ask_again(const Request& request, Failure failure,
                                const Server& server) const {
  return pool_.settings().retry_reads && flow::may_ask_again(request, whole_, failure) &&
         pool_.servers().contains(&server) && server.health().well();
}

void SideRequest::ask_again(Request& request, Server& server, std::string_view bytes) {
  request.retried = true;
  pool_.counters().retries.add();
  server.upstream(mode_, client_).send(request, bytes);
}

void SideRequest::drop(Request& request) { pool_.requests().drop(request); }

void SideRequest::give(std::string_view reply) {
  const auto end = std::move(self_);
  if (whole_.receiver)
    whole_.receiver->replied(whole_, reply);
  else
    drop(whole_);
}

void SideRequest::give(Failure failure) {
  pool_.counters().forward_error.add();
  give(pool_.protocol().reply_for(failure));
}

BlockingRequest::BlockingRequest(Client& client, std::unique_ptr<BlockingRequest>& self,
                                 std::vector<std::string> keys)
    : client_(client), self_(self), keys_(std::move(keys)) {
  client_.pool().servers().add_holder(*this);
}

BlockingRequest::~BlockingRequest() {
  client_.pool().servers().remove_holder(*this);
  connection_.reset();
  if (!resting_) return;
  client_.pool().loop().cancel(timer_);
  if (!resting_->receiver) client_.pool().requests().drop(*resting_);
}

void BlockingRequest::ask(Server& home, Request& request, std::string_view bytes) {
  client_.hold();
  begun_ = client_.pool().loop().now();
  if (client_.pool().settings().sends_again() && bytes.size() <= Detours::most_kept) bytes_ = bytes;
  send(home, request, bytes, false);
}

void BlockingRequest::send(Server& home, Request& request, std::string_view bytes, bool asks) {
  request.receiver = this;
  sent_ = client_.pool().loop().now();
  connection_ = client_.borrow(home, client_.mode());
  if (!connection_) return failed(request, Failure::overloaded);
  connection_->set_untimed(true);
  if (asks) connection_->send_aside(Detours::asking);
  connection_->send(request, bytes);  // this may be destroyed: no connection could be begun
}

void BlockingRequest::unblock(std::string_view why) {
  unblocked_ = why;
  if (!resting_) return connection_.reset();  // this is destroyed: the request fails
  client_.pool().loop().cancel(timer_);
  failed(*std::exchange(resting_, nullptr), Failure::closed);
}

bool BlockingRequest::check_homes() {
  if (connection_ && client_.pool().servers().have_left(connection_.server(), keys_))
    unblock("a key has another home now: ask again");
  return true;
}

bool BlockingRequest::may_go_on(std::string_view reply) const {
  return !bytes_.empty() && reply.starts_with('-') && client_.pool().detours().takes(reply);
}

void BlockingRequest::go_on(Request& request, std::string_view reply) {
  auto& pool = client_.pool();
  const auto now = pool.loop().now();
  const std::string error{reply};  // not of the connection's buffer, which goes
  pool.counters().detours.add();
  if (now - sent_ > has_waited || refused_ == SteadyTime{}) refused_ = now;
  const auto next = pool.detours().course(connection_.server(), error);
  connection_.reset();
  if (next.to && ++hops_ <= Detours::most_hops)
    return send(*next.to, request, bytes_for_the_rest(), next.asks);
  hops_ = 0;
  if (!rest(request)) finish(request, Detours::told(error), false);
}

/// False: its time is over.
bool BlockingRequest::rest(Request& request) {
  auto& pool = client_.pool();
  if (pool.loop().now() - refused_ >= Detours::patience(pool)) return false;
  connection_.reset();
  resting_ = &request;
  timer_ = pool.loop().after(between_attempts, [this] { ask_at_home(); });
  return true;
}

void BlockingRequest::ask_at_home() {
  Request& request = *std::exchange(resting_, nullptr);
  auto& protocol = client_.pool().protocol();
  const auto reader = protocol.request_reader();
  static_cast<void>(reader->read(bytes_));
  const auto words = reader->words();
  Server* const home = client_.home_for(words, protocol.plan(words)).server;
  if (!home) return failed(request, Failure::refused);
  send(*home, request, bytes_for_the_rest(), false);
}

/// When its time is over, it looks once more.
std::string BlockingRequest::bytes_for_the_rest() const {
  const auto reader = client_.pool().protocol().request_reader();
  static_cast<void>(reader->read(bytes_));
  std::vector<std::string_view> words{reader->words().begin(), reader->words().end()};
  const auto* const spec = resp::find_command(words);
  const auto at = spec ? resp::place_of_waiting_time(*spec, words) : std::nullopt;
  if (!at) return bytes_;
  const auto time = *resp::waiting_time(*spec, words);
  if (time == 0ms || time == std::chrono::milliseconds::max()) return bytes_;
  const auto gone =
      std::chrono::ceil<std::chrono::milliseconds>(client_.pool().loop().now() - begun_);
  const auto left = resp::waiting_text(*spec, std::max(time - gone, 1ms));
  words[*at] = left;
  std::string bytes;
  resp::append_command(bytes, words);
  return bytes;
}

void BlockingRequest::replied(Request& request, std::string_view reply) {
  if (may_go_on(reply)) return go_on(request, reply);
  finish(request, reply, true);
}

void BlockingRequest::failed(Request& request, Failure failure) {
  const bool was_unsent = failure == Failure::refused && !bytes_.empty() && unblocked_.empty() &&
                          client_.pool().settings().is_of_cluster();
  if (was_unsent && refused_ == SteadyTime{}) refused_ = sent_;
  if (was_unsent && rest(request)) return;
  const auto reply = unblocked_.empty() ? client_.pool().protocol().reply_for(failure)
                                        : fmt::format("-UNBLOCKED {}\r\n", unblocked_);
  finish(request, reply, false);
}

void BlockingRequest::finish(Request& request, std::string_view reply, bool clean) {
  Client& client = client_;
  request.receiver = &client;
  client.replied(request, reply);
  if (clean) connection_.give_back();
  self_.reset();
  client.release();
}

void ClientSession::block(Words words, std::string_view bytes, const Plan& plan) {
  if (client_.has_hung_up()) return client_.close_later();
  Server* const home = client_.home_or_answer(words, plan);
  if (!home) return;
  pool().note_key(words[plan.keys.front()]);
  Request& request = client_.enqueue(plan);
  note_key(request, words[plan.keys.front()]);
  blocked_ = std::make_unique<BlockingRequest>(client_, blocked_, keys_of(words, plan));
  blocked_->ask(*home, request, bytes);
}

}  // namespace sluice::proxy::flow
