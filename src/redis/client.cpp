#include "redis/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/timers.hpp"
#include "store/reply_error.hpp"

namespace sluice::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds round_time{1};

}  // namespace

Client::Client(RedisOptions options)
    : Client(options, {std::make_shared<Reactor>(), std::make_shared<Callbacks>(options.executor),
                       nullptr}) {}

Client::Client(RedisOptions options, Company company)
    : options_(std::move(options)),
      company_(std::move(company)),
      reactor_(*company_.reactor),
      hearer_(company_.hearer ? *company_.hearer : channels_),
      link_(std::make_shared<Link>(options_, reactor_, hearer_, trackers_, Link::Kind::shared)),
      listener_(
          std::make_shared<Link>(options_, reactor_, hearer_, trackers_, Link::Kind::listener)) {}

/// The thread keeps this Client while it may be inside of a link: the links use what is here.
void Client::add(const std::shared_ptr<Link>& link) {
  struct Kept {
    std::shared_ptr<Client> client;
    std::shared_ptr<Link> link;
  };
  const auto kept = std::make_shared<Kept>(shared_from_this(), link);
  reactor_.add(std::shared_ptr<Source>{kept, link.get()});
}

void Client::join() {
  add(link_);
  add(listener_);
}

void Client::start(std::shared_ptr<Client> self) {
  join();
  reactor_.start(std::move(self));
}

/// Until no link awaits a reply, and no thread is inside of what may send something.
void Client::read_last(const Links& links, Patience& patience) {
  do {
    // Before the links are asked: they know what a thread that is idle since then has sent.
    const bool busy = reactor_.is_busy_elsewhere() || callbacks().is_busy_elsewhere();
    bool waited = false;
    bool read = false;
    for (const auto& link : links) {
      const auto last = link->read_last(waited ? milliseconds{0} : round_time);
      waited |= last != Link::Last::none_awaited;
      read |= last == Link::Last::read;
    }
    if (!busy && !waited) return;
    if (!waited) std::this_thread::sleep_for(round_time);
    if (read) patience.quiet_rounds = Patience{}.quiet_rounds;
  } while (--patience.rounds > 0 && --patience.quiet_rounds > 0);
}

void Client::close() {
  const std::shared_ptr<Client> self[] = {shared_from_this()};
  leave(self);
  reactor_.stop();
  callbacks().end();
}

std::vector<std::shared_ptr<Link>> Client::links() {
  Links links{link_, listener_};
  const std::lock_guard lock{mutex_};
  links.insert(links.end(), lent_.begin(), lent_.end());
  links.insert(links.end(), spare_.begin(), spare_.end());
  for (const auto& [wait, line] : durable_lines_) links.push_back(line->link());
  return links;
}

bool Client::awaits_copies() {
  const std::lock_guard lock{mutex_};
  return std::ranges::any_of(durable_lines_,
                             [](const auto& one) { return !one.second->link()->is_free(); });
}

void Client::abandon() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
  }
  for (const auto& link : links()) {
    link->close();
    reactor_.remove(*link);
  }
}

Client::Links Client::begin_to_leave(std::vector<std::shared_ptr<Borrower>>& borrowers) {
  Links links{listener_};
  const std::lock_guard lock{mutex_};
  closed_ = true;
  links.insert(links.end(), lent_.begin(), lent_.end());
  for (const auto& [wait, line] : durable_lines_) links.push_back(line->link());
  links.insert(links.end(), spare_.begin(), spare_.end());
  spare_.clear();
  for (const auto& borrower : borrowers_) borrower->link = lend();
  borrowers.insert(borrowers.end(), borrowers_.begin(), borrowers_.end());
  borrowers_.clear();
  return links;
}

void Client::leave(std::span<const std::shared_ptr<Client>> clients) {
  if (clients.empty()) return;
  await_running_timer();
  Links links;
  Links shared;
  std::vector<std::shared_ptr<Borrower>> borrowers;
  for (const auto& client : clients) {
    const Links others = client->begin_to_leave(borrowers);
    links.insert(links.end(), others.begin(), others.end());
    shared.push_back(client->link_);
  }
  Client& any = *clients.front();
  Patience patience;
  Links all = links;
  all.insert(all.end(), shared.begin(), shared.end());
  any.read_last(all, patience);
  // What has waited on another link gives back what it has by the shared one.
  for (const auto& link : links) link->close();
  any.read_last(shared, patience);
  for (const auto& link : shared) link->close();
  for (const auto& borrower : borrowers) borrower->called.complete();
  await_running_timer();
  for (const auto& link : all) any.reactor_.remove(*link);
}

std::shared_ptr<Link> Client::make_link(Link::Kind kind, milliseconds holds_up) {
  auto link = std::make_shared<Link>(options_, reactor_, hearer_, trackers_, kind, holds_up);
  if (closed_) {
    link->close();
  } else {
    add(link);
  }
  return link;
}

std::shared_ptr<Link> Client::lend() {
  std::shared_ptr<Link> link;
  if (spare_.empty()) {
    link = make_link(Link::Kind::lent);
  } else {
    link = std::move(spare_.back());
    spare_.pop_back();
  }
  lent_.push_back(link);
  return link;
}

Task<std::shared_ptr<Link>> Client::borrow(SteadyTime deadline) {
  if (is_of_parent()) throw closed_by_fork();
  const auto borrower = std::make_shared<Borrower>();
  {
    const std::lock_guard lock{mutex_};
    if (closed_ || lent_.size() < options_.most_blocking) co_return lend();
    borrowers_.push_back(borrower);
  }
  co_await wait_until(borrower->called, system_clock(), deadline);
  const std::lock_guard lock{mutex_};
  if (borrower->link) co_return borrower->link;
  borrowers_.remove(borrower);
  throw Error{
      Errc::connection,
      fmt::format("{} blocking commands wait on {} already, the most that this Store allows "
                  "at once, and none has ended in time",
                  lent_.size(), describe(options_))};
}

void Client::give_back(std::shared_ptr<Link> link) {
  const bool is_free = link->is_free();
  bool is_spare = false;
  std::shared_ptr<Borrower> next;
  {
    const std::lock_guard lock{mutex_};
    std::erase(lent_, link);
    is_spare = is_free && !closed_ && (spare_.size() < most_spare || !borrowers_.empty());
    if (is_spare) spare_.push_back(link);
    if (!borrowers_.empty()) {
      next = std::move(borrowers_.front());
      borrowers_.pop_front();
      next->link = lend();
    }
  }
  if (next) next->called.complete();
  if (is_spare) return;
  link->close();
  reactor_.remove(*link);
}

void Client::end_idle_durable_lines() {
  std::erase_if(durable_lines_, [this](const auto& one) {
    const auto& [wait, line] = one;
    // What takes back a request that was given up has to come after it, on its connection.
    if (line.use_count() > 1 || !line->link()->is_free()) return false;
    line->link()->close();
    reactor_.remove(*line->link());
    return true;
  });
}

std::shared_ptr<DurableLine> Client::durable_line(const DurableLine::Wait& wait) {
  const std::lock_guard lock{mutex_};
  if (durable_lines_.size() >= most_durable_lines && !durable_lines_.contains(wait))
    end_idle_durable_lines();
  auto& line = durable_lines_[wait];
  if (!line)
    line = std::make_shared<DurableLine>(wait, make_link(Link::Kind::durable, wait.within));
  return line;
}

}  // namespace sluice::redis
