#include "cli/load/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "loop/stream.hpp"

namespace sluice::load {
namespace {

using namespace std::chrono_literals;

constexpr auto slow_piece_pause = 50ms;
/// A server whose connection broke is not asked for so long, where there are others.
constexpr auto rest_time = 500ms;

std::string words_for(int error) {
  return error == 0 ? "connection closed" : std::generic_category().message(error);
}

}  // namespace

class Wire::Connection final : public loop::Stream {
 public:
  Connection(Wire& wire, std::size_t target) : Stream(wire.loop_), wire_(wire), target_(target) {}

  void open(std::unique_ptr<net::Transport> transport) { attach(std::move(transport)); }

  void ask(Ask ask) {
    buyer_ = ask.buyer;
    deadline_ = loop_.after(wire_.options_.timeout, [this] { give_up(); });
    if (!ask.slowly) return write(ask.bytes);
    slow_rest_ = std::move(ask.bytes);
    const auto pieces = std::max<std::int64_t>(1, wire_.options_.slow_time / slow_piece_pause);
    slow_piece_ = slow_rest_.size() / static_cast<std::size_t>(pieces) + 1;
    send_slowly();
  }

  std::optional<std::uint64_t> buyer() const noexcept { return buyer_; }
  std::size_t target() const noexcept { return target_; }
  void close() {
    if (deadline_) loop_.cancel(*std::exchange(deadline_, {}));
    if (slow_timer_) loop_.cancel(*std::exchange(slow_timer_, {}));
    detach();
  }

  std::list<std::unique_ptr<Connection>>::iterator place;

 private:
  std::size_t consume(std::string_view bytes) override {
    const auto used = reader_.consume(bytes);
    if (reader_.is_bad()) {
      wire_.broke(*this, "bad answer: " + reader_.why());
      return bytes.size();
    }
    if (!reader_.is_complete()) return used;
    if (!buyer_ || used != bytes.size()) {
      wire_.broke(*this, "bad answer: nobody asked for it");
      return bytes.size();
    }
    loop_.cancel(*std::exchange(deadline_, {}));
    auto answer = reader_.take();
    if (!slow_rest_.empty()) answer.keeps_alive = false;  // it did not wait for the whole request
    const bool keeps = answer.keeps_alive;
    wire_.answered(*this, std::move(answer));
    if (!keeps) wire_.broke(*this, {});
    return bytes.size();
  }

  bool heeds_last_words() const noexcept override { return true; }
  void ended(int error) override {
    wire_.broke(*this,
                reader_.has_begun() ? "connection closed within an answer" : words_for(error));
  }
  void writable() override {
    if (const int error = net::connect_error(descriptor()); error != 0)
      wire_.broke(*this, words_for(error));
  }
  void give_up() {
    deadline_.reset();
    wire_.broke(*this, "no answer in time");
  }

  void send_slowly() {
    slow_timer_.reset();
    const auto piece = std::min(slow_piece_, slow_rest_.size());
    write(std::string_view{slow_rest_}.substr(0, piece));
    slow_rest_.erase(0, piece);
    if (!slow_rest_.empty()) slow_timer_ = loop_.after(slow_piece_pause, [this] { send_slowly(); });
  }

  friend class Wire;
  Wire& wire_;
  const std::size_t target_;
  ResponseReader reader_;
  std::optional<std::uint64_t> buyer_;  // who waits for an answer
  std::optional<loop::Loop::TimerId> deadline_;
  std::optional<loop::Loop::TimerId> slow_timer_;
  std::string slow_rest_;
  std::size_t slow_piece_ = 0;
};

Wire::Wire(Clock& clock, std::vector<LoadTarget> targets, WireOptions options)
    : targets_(std::move(targets)),
      options_(std::move(options)),
      tls_failed_([this](const Error& why) { tls_trouble_ = why.message(); }),
      loop_(clock),
      idle_(targets_.size()),
      rests_until_(targets_.size()) {}

Wire::~Wire() {
  for (auto& connection : connections_) connection->close();
}

void Wire::turn(Crowd& crowd, std::chrono::milliseconds patience) {
  crowd_ = &crowd;
  send_what_is_due(crowd);
  auto wait = patience;
  if (has_place()) {
    const auto due = crowd.next_due() - loop_.clock().steady();
    wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(due), 0ms, patience);
  }
  loop_.turn(wait);
  send_what_is_due(crowd);
  crowd_ = nullptr;
}

void Wire::drop_unanswered() {
  for (auto next = connections_.begin(); next != connections_.end();) {
    auto& connection = **next++;
    if (!connection.buyer()) continue;
    connection.buyer_.reset();
    --busy_;
    forget(connection);
  }
}

void Wire::send_what_is_due(Crowd& crowd) {
  while (has_place()) {
    auto ask = crowd.next(loop_.clock().steady());
    if (!ask) return;
    send(std::move(*ask));
  }
}

void Wire::send(Ask ask) {
  const auto buyer = ask.buyer;
  try {
    auto& connection = connection_for(buyer);
    ++busy_;
    connection.ask(std::move(ask));
  } catch (const std::system_error& failure) {  // refused at once, or no descriptors are left
    crowd_->failed(buyer, failure.code().message(), loop_.clock().steady());
  }
}

/// The buyer's own server, as a balancer would choose it; the next one where connections to that
/// broke a moment ago.
Wire::Connection& Wire::connection_for(std::uint64_t buyer) {
  auto target = static_cast<std::size_t>(buyer % targets_.size());
  const auto now = loop_.clock().steady();
  for (std::size_t i = 0; i < targets_.size() && rests_until_[target] > now; ++i)
    target = (target + 1) % targets_.size();
  auto& idle = idle_[target];
  if (idle.empty()) return connect(target);
  auto& connection = *idle.back();
  idle.pop_back();
  return connection;
}

Wire::Connection& Wire::connect(std::size_t target) {
  auto socket = net::Socket::start_connect(targets_[target].address);
  std::unique_ptr<net::Transport> transport;
  if (options_.tls)
    transport =
        options_.tls->connect(std::move(socket), targets_[target].endpoint.host, tls_failed_);
  else
    transport = std::make_unique<net::Socket>(std::move(socket));
  auto made = std::make_unique<Connection>(*this, target);
  made->open(std::move(transport));
  connections_.push_back(std::move(made));
  connections_.back()->place = std::prev(connections_.end());
  return *connections_.back();
}

void Wire::answered(Connection& connection, HttpAnswer answer) {
  const auto buyer = *std::exchange(connection.buyer_, std::nullopt);
  rests_until_[connection.target()] = {};
  --busy_;
  const bool keeps = answer.keeps_alive;
  if (keeps) idle_[connection.target()].push_back(&connection);
  crowd_->answered(buyer, answer, loop_.clock().steady());
}

/// `why` is empty where the server closes after its answer.
void Wire::broke(Connection& connection, std::string why) {
  if (!tls_trouble_.empty()) why = std::exchange(tls_trouble_, {});
  const auto buyer = std::exchange(connection.buyer_, std::nullopt);
  if (buyer) {
    rests_until_[connection.target()] = loop_.clock().steady() + rest_time;
    --busy_;
  }
  std::erase(idle_[connection.target()], &connection);
  forget(connection);
  if (buyer) crowd_->failed(*buyer, why, loop_.clock().steady());
}

void Wire::forget(Connection& connection) {
  connection.close();
  auto kept = std::move(*connection.place);
  connections_.erase(connection.place);
  loop_.bury(std::move(kept));
}

}  // namespace sluice::load
