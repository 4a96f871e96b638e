#include "redis/master_finder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/log.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using topology::SentinelQuestion;

/// A server that is not asked for so long needs no connection.
constexpr auto kept_for = 10s;
/// A Sentinel that answers nothing for so long is connected to anew.
constexpr std::chrono::milliseconds silence{1'000};

topology::Endpoint topology_endpoint(const net::Endpoint& endpoint) {
  return {endpoint.host, endpoint.port};
}

net::Endpoint net_endpoint(const topology::Endpoint& endpoint) {
  return {.host = endpoint.host, .port = endpoint.port, .unix_path = {}};
}

std::vector<topology::Endpoint> seeds(const SentinelStoreOptions& options) {
  std::vector<topology::Endpoint> all;
  for (const auto& sentinel : options.sentinels) all.push_back(topology_endpoint(sentinel));
  return all;
}

RedisOptions options_to_servers(const SentinelStoreOptions& options) {
  RedisOptions server = options.server;
  server.moving = nullptr;
  server.database = 0;
  server.command_timeout = std::max(server.connect_timeout, silence);
  server.idle = silence;
  return server;
}

/// The user and the password of the master are no business of a Sentinel's.
RedisOptions options_to_sentinels(const SentinelStoreOptions& options) {
  RedisOptions sentinel = options_to_servers(options);
  sentinel.kind = ServerKind::sentinel;
  sentinel.user = options.sentinel_user;
  sentinel.password = options.sentinel_password;
  sentinel.tls = options.sentinel_tls;
  return sentinel;
}

std::vector<std::vector<std::string>> commands_of(const SentinelQuestion& question,
                                                  const std::string& name) {
  if (question.to == SentinelQuestion::To::sentinel) return topology::sentinel_commands(name);
  return {{"ROLE"}};
}

}  // namespace

MasterFinder::MasterFinder(const SentinelStoreOptions& options, Reactor& reactor,
                           std::shared_ptr<Replicas> replicas)
    : reactor_(reactor),
      moving_(options.server.moving),
      replicas_(std::move(replicas)),
      name_(options.name),
      to_sentinels_(options_to_sentinels(options)),
      to_servers_(options_to_servers(options)),
      opens_until_(Clock::add(system_clock().steady(), std::min(options.server.connect_timeout,
                                                                options.server.open_timeout))),
      watch_(seeds(options),
             {.name = options.name, .longest_answer_timeout = options.server.connect_timeout}) {}

void MasterFinder::wait_for_master() {
  std::unique_lock lock{mutex_};
  told_.wait(lock, [&] { return is_open_ || hopeless_ || closed_; });
  if (!is_open_ && hopeless_) throw *hopeless_;
}

void MasterFinder::close() {
  std::vector<LinePtr> lines;
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    for (const auto& [node, sentinel] : sentinels_) {
      lines.push_back(sentinel.asked);
      lines.push_back(sentinel.heard);
    }
    for (const auto& [node, server] : servers_) lines.push_back(server);
    lines.insert(lines.end(), left_.begin(), left_.end());
    sentinels_.clear();
    servers_.clear();
    left_.clear();
    told_.notify_all();
  }
  for (const auto& line : lines) {
    line->link.close();
    reactor_.remove(line->link);
  }
  reactor_.remove(*this);  // its replicas own the Client, which owns the reactor
}

SteadyTime MasterFinder::on_tick(SteadyTime now) {
  std::vector<std::pair<LinePtr, SentinelQuestion>> questions;
  std::vector<LinePtr> left;
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return SteadyTime::max();
    if (moving_->take_doubt()) {
      watch_.doubt(now);
      has_news_ = true;
    }
    // Every event of the Client ticks all its sources.
    if (!has_news_ && now < next_tick_) return next_tick_;
    has_news_ = false;
    auto asked = watch_.act(now);
    tell(now);
    if (replicas_) replicas_->follow(master_, watch_.replicas());
    follow_sentinels();
    leave_servers(now);
    for (auto& question : asked) {
      auto line = question.to == SentinelQuestion::To::sentinel
                      ? sentinels_.at(question.node).asked
                      : line_to_server(question.node, now);
      questions.emplace_back(std::move(line), std::move(question));
    }
    left.swap(left_);
    next_tick_ = is_open_ ? watch_.wakes() : std::min(watch_.wakes(), opens_until_);
  }
  for (const auto& line : left) {
    line->link.close();
    reactor_.remove(line->link);
  }
  for (auto& [line, question] : questions)
    spawn(ask(shared_from_this(), std::move(line), std::move(question)));
  return next_tick_;
}

Task<void> MasterFinder::ask(std::shared_ptr<MasterFinder> self, LinePtr line,
                             SentinelQuestion question) {
  Request request{Request::Kind::batch};
  for (const auto& command : commands_of(question, self->name_)) {
    const std::vector<std::string_view> words{command.begin(), command.end()};
    request.add(words);
  }
  std::vector<Value> replies(request.commands());
  Operation operation{request, replies, question.deadline, {.repeatable = true}, &line->link};
  operation.once = true;  // a node that refuses is not one that is slow
  line->link.submit(operation);
  co_await operation.done;
  self->take(question, operation.failure, replies);
}

void MasterFinder::take(const SentinelQuestion& question, const std::exception_ptr& failure,
                        std::span<const Value> replies) {
  const bool is_of_server = question.to == SentinelQuestion::To::server;
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (closed_) return;
  try {
    if (failure) std::rethrow_exception(failure);
    if (is_of_server) refused_.reset();
    watch_.answered(now, question.id, replies);
  } catch (const Error& error) {
    const bool is_refused = error.errc() == Errc::authentication;
    if (is_refused && is_of_server) refused_ = error;
    is_refused_by_sentinel_ |= is_refused && !is_of_server;
    watch_.failed(now, question.id, error.message());
  }
  has_news_ = true;
  reactor_.wake();
}

void MasterFinder::hear(const topology::Endpoint& sentinel, const Message& message) {
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (message.kind == Message::Kind::published)
    watch_.heard(now, message.payload);
  else
    watch_.is_back(now, sentinel);
  has_news_ = true;
  reactor_.wake();
}

/// What SentinelWatch knows, to MovingEndpoint and to who opens the Store.
void MasterFinder::tell(SteadyTime now) {
  const auto& master = watch_.master();
  const auto why = master ? std::string{} : watch_.why_not();
  if (!master) moving_->explain(why);
  if (master != master_) {
    if (is_open_ && master)
      log(LogLevel::warning,
          fmt::format("{}: the master is {} now", moving_->server(), to_string(*master)));
    if (is_open_ && !master)
      log(LogLevel::warning, fmt::format("{}: {} is not used any more: {}", moving_->server(),
                                         to_string(*master_), why));
    master_ = master;
    moving_->change(master ? std::optional{net_endpoint(*master)} : std::nullopt);
    reactor_.wake();
  }
  if (is_open_) return;
  is_open_ = master_.has_value();
  if (!is_open_) hopeless_ = hopelessness(now);
  if (is_open_ || hopeless_) told_.notify_all();
}

/// Why the Store cannot be opened.
std::optional<Error> MasterFinder::hopelessness(SteadyTime now) const {
  const auto why = [&] {
    return fmt::format("cannot open {}: {}", moving_->server(), watch_.why_not());
  };
  if (refused_) return refused_;
  const bool is_over = now >= opens_until_;
  if (!is_over && !watch_.have_all_told()) return std::nullopt;
  if (!watch_.has_any_answered())
    return Error{is_refused_by_sentinel_ ? Errc::authentication : Errc::connection, why()};
  if (watch_.is_name_unknown()) return Error{Errc::server, why()};
  if (is_over) return Error{Errc::timeout, why()};
  return std::nullopt;
}

void MasterFinder::follow_sentinels() {
  const auto known = watch_.sentinels();
  std::erase_if(sentinels_, [&](const auto& one) {
    const auto& [node, sentinel] = one;
    if (std::ranges::binary_search(known, node)) return false;
    left_.push_back(sentinel.asked);
    left_.push_back(sentinel.heard);
    return true;
  });
  for (const auto& node : known)
    if (!sentinels_.contains(node))
      sentinels_[node] = {make_line(to_sentinels_, node, Link::Kind::lent), listen_to(node)};
}

/// Those that were not asked for a while; and where there are too many, the first to be asked.
void MasterFinder::leave_servers(SteadyTime now) {
  std::erase_if(servers_, [&](const auto& one) {
    if (now < Clock::add(one.second->asked, kept_for)) return false;
    left_.push_back(one.second);
    return true;
  });
  if (servers_.size() < most_servers) return;
  const auto oldest =
      std::ranges::min_element(servers_, {}, [](const auto& one) { return one.second->asked; });
  left_.push_back(oldest->second);
  servers_.erase(oldest);
}

MasterFinder::LinePtr MasterFinder::line_to_server(const topology::Endpoint& server,
                                                   SteadyTime now) {
  auto& line = servers_[server];
  if (!line) line = make_line(to_servers_, server, Link::Kind::lent);
  line->asked = now;
  return line;
}

MasterFinder::LinePtr MasterFinder::make_line(RedisOptions options, const topology::Endpoint& to,
                                              Link::Kind kind) {
  options.endpoint = net_endpoint(to);
  auto line = std::make_shared<Line>(std::move(options), reactor_, kind);
  reactor_.add(std::shared_ptr<Link>{line, &line->link});
  return line;
}

/// To all of them: one may be cut off from the others. The greeting of each connection subscribes,
/// and a gap is told with it.
MasterFinder::LinePtr MasterFinder::listen_to(const topology::Endpoint& sentinel) {
  auto line = make_line(to_sentinels_, sentinel, Link::Kind::listener);
  const std::string channel{topology::switch_channel};
  line->channels.add(channel, std::make_shared<Handler>(
                                  [weak = weak_from_this(), sentinel](const Message& message) {
                                    if (const auto self = weak.lock())
                                      self->hear(sentinel, message);
                                  }));
  line->channels.confirm(Hearer::Kind::classic, channel);
  return line;
}

}  // namespace sluice::redis
