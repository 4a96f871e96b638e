#include "lock/simulation/connection.hpp"

#include <algorithm>

namespace sluice::simulation {

using std::chrono::nanoseconds;

SimConnection::SimConnection(VirtualClock& clock, SimServer& server, Journal& journal,
                             const Mutation& mutation, const LineTerms& terms, Dice dice)
    : clock_(clock),
      server_(server),
      journal_(journal),
      mutation_(mutation),
      terms_(terms),
      dice_(dice),
      life_(server.life()) {}

nanoseconds SimConnection::delay() {
  const auto usual = dice_.upto(terms_.longest_delay);
  return dice_.chance(5) ? 5 * usual : usual;
}

void SimConnection::send(Work arrives) {
  last_arrival_ = std::max(last_arrival_, clock_.steady() + delay());
  clock_.at(last_arrival_, [self = shared_from_this(), number = ++sent_,
                            arrives = std::move(arrives)] { self->reach_server(number, arrives); });
}

/// What has piled up while the server hung is read in order, one connection after another.
void SimConnection::reach_server(std::uint64_t number, const Work& arrives) {
  const auto now = clock_.steady();
  if (server_.hangs_until() > now && read_again_at_ < server_.hangs_until())
    read_again_at_ = server_.hangs_until() + dice_.upto(std::chrono::milliseconds{20});
  if (read_again_at_ <= now) return arrive(number, arrives);
  clock_.at(read_again_at_,
            [self = shared_from_this(), number, arrives] { self->arrive(number, arrives); });
}

void SimConnection::arrive(std::uint64_t number, const Work& arrives) {
  arrived_ = number;
  if (!cut_) return arrives();
  if (number > gets_through_) return;
  clock_.after(lateness_, [self = shared_from_this(), arrives] {
    if (self->closed_ || self->server_.life() != self->life_) return;
    ++self->late_;
    arrives();
  });
}

void SimConnection::say(Work arrives) {
  if (cut_) return;
  last_reply_ = std::max(last_reply_, clock_.steady() + terms_.slowness + delay());
  clock_.at(last_reply_, [self = shared_from_this(), arrives = std::move(arrives)] {
    if (!self->cut_) arrives();
  });
}

void SimConnection::execute(const Batch& batch,
                            std::function<void(const std::vector<Value>&)> answered) {
  executing_ = terms_.push_after_reply;
  auto replies = server_.execute(batch);
  executing_ = false;
  const auto& last = batch.items().back();
  const bool waits = !last.script && last.words.front() == "WAIT" && !replies.back().is_error();
  if (waits) {
    const std::chrono::milliseconds within{std::stoll(last.words[2])};
    server_.when_replicated(within, [self = shared_from_this(), replies = std::move(replies),
                                     answered = std::move(answered)](std::int64_t have) mutable {
      replies.back() = Value::integer(have);
      self->reply(replies, std::move(answered));
    });
  } else {
    reply(replies, std::move(answered));
  }
  for (auto& push : std::exchange(pushes_, {})) say(std::move(push));
  if (mutation_.renews_after_release) renew_behind(batch);
}

void SimConnection::reply(const std::vector<Value>& replies,
                          std::function<void(const std::vector<Value>&)> answered) {
  say([answered = std::move(answered), replies] { answered(replies); });
}

void SimConnection::renew_behind(const Batch& batch) {
  for (const auto& item : batch.items()) {
    if (!item.script) continue;
    if (item.script->name.ends_with("/renew")) last_renewal_ = batch;
    if (!item.script->name.ends_with("/release") || last_renewal_.empty()) continue;
    clock_.after(delay(), [self = shared_from_this(), again = std::exchange(last_renewal_, {})] {
      self->server_.execute(again);
    });
  }
}

void SimConnection::subscribe(const std::string& channel,
                              std::function<void(const Message&)> heard) {
  if (closed_ || subscriptions_.contains(channel)) return;
  auto hear = [weak = weak_from_this(), heard = std::move(heard)](const Message& message) {
    const auto self = weak.lock();
    if (!self || (self->mutation_.loses_grants && message.payload.starts_with("grant"))) return;
    self->journal_.note("publish: {} {}", message.channel, message.payload);
    auto push = [heard, message] { heard(message); };
    if (self->executing_) {
      self->pushes_.emplace_back(std::move(push));
    } else {
      self->say(std::move(push));
    }
  };
  subscriptions_.emplace(channel, server_.store().listen(channel, std::move(hear)).get());
}

void SimConnection::close() {
  closed_ = true;
  subscriptions_.clear();
}

nanoseconds SimConnection::cut() {
  cut_ = true;
  const bool restarted = server_.life() != life_;
  gets_through_ = restarted ? 0 : arrived_ + dice_.below(sent_ - arrived_ + 1);
  lateness_ = dice_.chance(50) ? nanoseconds{} : dice_.upto(terms_.longest_late);
  const nanoseconds unaware = dice_.chance(50) ? nanoseconds{} : dice_.upto(terms_.longest_unaware);
  // What is on its way arrives before the end of the connection does.
  const auto all_in = std::max(last_arrival_ - clock_.steady(), nanoseconds{}) + lateness_;
  if (restarted) {
    close();
  } else {
    clock_.after(std::max(all_in, unaware) + nanoseconds{1},
                 [self = shared_from_this()] { self->close(); });
  }
  return dice_.chance(50) ? nanoseconds{} : dice_.upto(terms_.longest_unaware);
}

}  // namespace sluice::simulation
