#include "proxy/flow/session/subscription.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/subscription_line.hpp"
#include "proxy/redis/wire.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t name_cost = 64;  // beside its bytes

/// The first word of a push: "message", "subscribe" ... Empty: it has none.
std::string_view word_of_push(std::string_view push) noexcept {
  std::size_t scanned = 0;
  const auto header = element_at(push, scanned);
  if (header.type != '>' || header.children == 0) return {};
  scanned = 0;
  const auto word = element_at(push.substr(header.size), scanned);
  if (word.type != '$' || word.null) return {};
  const auto length = static_cast<std::size_t>(word.number);
  return push.substr(header.size + word.size - length - 2, length);
}

}  // namespace

Subscriptions::Subscriptions(Client& client, Pool& pool) : client_(client), pool_(pool) {
  pool_.add_subscriber(*this);
}

Subscriptions::~Subscriptions() {
  pool_.remove_subscriber(*this);
  pool_.loop().cancel(timer_);
}

bool Subscriptions::is_everywhere(Kind kind) const noexcept {
  return kind == Kind::pattern || pool_.settings().distribution == Distribution::random;
}

/// Nothing is begun when not all can be.
bool Subscriptions::may_subscribe(Kind kind, Words wanted) {
  auto bytes = name_bytes_;
  for (const auto name : wanted) {
    bytes += name.size() + name_cost;
    if (names(kind).contains(name)) continue;
    const bool has_home =
        is_everywhere(kind)
            ? std::ranges::any_of(pool_.servers(),
                                  [](const auto& server) { return server->health().well(); })
            : pool_.home_of(name) != nullptr;
    if (!has_home) {
      client_.answer(Failure::refused);
      return false;
    }
  }
  if (bytes <= pool_.settings().client_output_limit) return true;
  client_.answer("-ERR more subscriptions than client_output_limit allows for their names\r\n");
  return false;
}

void Subscriptions::subscribe(Kind kind, Words wanted) {
  if (!may_subscribe(kind, wanted)) return;
  for (const auto name : wanted) change(kind, name, true);
  send();
}

void Subscriptions::unsubscribe(Kind kind, Words unwanted) {
  if (!unwanted.empty()) {
    for (const auto name : unwanted) change(kind, name, false);
  } else if (names(kind).empty()) {
    awaited_.push_back(
        {.kind = kind, .begins = false, .changes = false, .named = false, .name = {}});
  } else {
    std::vector<std::string> all;
    for (const auto& [name, home] : names(kind)) all.push_back(name);
    for (const auto& name : all) change(kind, name, false);
  }
  send();
}

void Subscriptions::change(Kind kind, std::string_view name, bool begin) {
  const auto number = first_awaited_ + awaited_.size();
  auto& awaited = awaited_.emplace_back(Awaited{
      .kind = kind, .begins = begin, .changes = false, .named = true, .name = std::string{name}});
  const auto known = names(kind).find(name);
  if (begin == (known != names(kind).end())) return;
  awaited.changes = true;
  const auto ask = [&](Line& line) {
    line.add(kind, name, begin, number);
    ++awaited.missing;
  };
  Server* home = nullptr;
  if (begin && !is_everywhere(kind)) home = pool_.home_of(name);
  if (!begin) home = known->second;
  if (home) {
    ask(line_to(*home));
  } else if (begin) {
    for (const auto& server : pool_.servers())
      if (server->health().well()) ask(line_to(*server));
  } else {
    for (const auto& line : lines_) ask(*line);
  }
  const auto cost = name.size() + name_cost;
  name_bytes_ = begin ? name_bytes_ + cost : name_bytes_ - cost;
  if (begin)
    names(kind).emplace(name, home);
  else
    names(kind).erase(known);
}

Subscriptions::Line& Subscriptions::line_to(Server& server) {
  const auto found =
      std::ranges::find(lines_, &server, [](const auto& line) { return &line->server(); });
  if (found != lines_.end()) return **found;
  return *lines_.emplace_back(std::make_unique<Line>(*this, server));
}

/// What change() has gathered. A connection that cannot even be begun ends all.
void Subscriptions::send() {
  for (std::size_t i = 0; i < lines_.size() && !ended_; ++i) lines_[i]->send();
  if (ended_) return;
  announce();
  if (!awaited_.empty()) expect_confirmation();
}

void Subscriptions::expect_confirmation() {
  client_.hold();
  holds_ = true;
  const auto& timeout = pool_.settings().timeout;
  if (!timeout) return;
  timer_ = pool_.loop().after(*timeout, [this] {
    std::string reply;
    pool_.protocol().append_failure(reply, Failure::timed_out);
    end(reply);
  });
}

/// In the order asked, whatever the order in which servers have confirmed.
void Subscriptions::announce() {
  std::string text;
  while (!awaited_.empty() && awaited_.front().missing == 0) {
    append_confirmation(text, awaited_.front());
    awaited_.pop_front();
    ++first_awaited_;
  }
  if (!text.empty()) client_.push(text);
  if (awaited_.empty()) all_announced();
}

void Subscriptions::append_confirmation(std::string& out, const Awaited& awaited) {
  if (awaited.changes) counted(awaited.kind) += awaited.begins ? 1 : static_cast<std::size_t>(-1);
  const bool sharded = awaited.kind == Kind::sharded;
  const auto total =
      sharded ? counted(Kind::sharded) : counted(Kind::channel) + counted(Kind::pattern);
  resp::ReplyWriter writer{out, client_.variant().resp};
  writer.push(3);
  writer.bulk(verb_of(awaited.kind, awaited.begins));
  if (awaited.named)
    writer.bulk(awaited.name);
  else
    writer.null();
  writer.integer(static_cast<std::int64_t>(total));
}

void Subscriptions::all_announced() {
  if (!deferred_.empty()) client_.push(std::exchange(deferred_, {}));
  pool_.loop().cancel(std::exchange(timer_, {}));
  for (auto& line : lines_)
    if (line->is_unused()) line->give_back();
  std::erase_if(lines_, [](const auto& line) { return line->is_unused(); });
  if (std::exchange(holds_, false)) client_.release();
}

void Subscriptions::heard(Line& line, std::string_view message) {
  if (ended_ || client_.is_closing()) return;
  if (message.front() != '>') return end(message);  // an error: it may not
  const auto word = word_of_push(message);
  if (word.ends_with("subscribe"))
    confirmed(line);
  else if (word.ends_with("message"))
    pass(message);
}

/// May give the line back, or end the client.
void Subscriptions::confirmed(Line& line) {
  const auto number = line.take_expected();
  if (!number) return end({});  // the server has ended a subscription by itself
  --awaited_[*number - first_awaited_].missing;
  announce();
}

/// At once, unless it may be of a subscription that the client does not know of yet. (All that is
/// awaited is of one request: it begins, or it ends.)
void Subscriptions::pass(std::string_view message) {
  const bool resp3 = client_.variant().resp == 3;
  if (awaited_.empty() || !awaited_.front().begins) {
    if (!resp3) client_.push("*");
    client_.push(resp3 ? message : message.substr(1));
  } else {
    deferred_ += resp3 ? '>' : '*';
    deferred_ += message.substr(1);
  }
  close_if_slow();
}

/// Closed at once, and with it we are gone.
void Subscriptions::close_if_slow() {
  const auto waiting = client_.unsent() + deferred_.size();
  if (waiting <= pool_.settings().client_output_limit) return;
  pool_.counters().slow_subscribers.add();
  log(LogLevel::warning,
      fmt::format(
          "pool '{}': a subscriber does not take its messages; closed with {} bytes waiting",
          pool_.settings().name, waiting));
  client_.close();
}

bool Subscriptions::check_homes() {
  const auto& servers = pool_.servers();
  const auto is_of_pool = [&](const Server* server) {
    return std::ranges::any_of(servers, [&](const auto& one) { return one.get() == server; });
  };
  const auto has_line = [&](const Server* server) {
    return std::ranges::any_of(lines_, [&](const auto& line) { return &line->server() == server; });
  };
  bool same =
      std::ranges::all_of(lines_, [&](const auto& line) { return is_of_pool(&line->server()); });
  for (const auto& names : names_)
    for (const auto& [name, home] : names) {
      if (!same) break;
      if (home) {
        const auto* const now = pool_.home_of(name);
        same = now == nullptr || now == home;
      } else {
        same = std::ranges::all_of(servers, [&](const auto& server) {
          return !server->health().well() || has_line(server.get());
        });
      }
    }
  if (!same) end({});
  return same;
}

/// Nothing is destroyed here: this may be called by a line in the middle of its work.
void Subscriptions::end(std::string_view reply) {
  if (std::exchange(ended_, true)) return;
  pool_.counters().lost_subscribers.add();
  if (!awaited_.empty()) client_.push(reply);
  for (const auto& line : lines_) line->close();
  client_.close_later();
}

}  // namespace sluice::proxy
