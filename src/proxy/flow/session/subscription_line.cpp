#include "proxy/flow/session/subscription_line.hpp"

#include <array>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

struct KindRow {
  std::string_view begin, end;
};
constexpr std::array<KindRow, Subscriptions::kinds> kind_rows{{
    {"subscribe", "unsubscribe"},
    {"psubscribe", "punsubscribe"},
    {"ssubscribe", "sunsubscribe"},
}};

}  // namespace

std::string_view verb_of(Subscriptions::Kind kind, bool begin) noexcept {
  const auto& row = kind_rows[static_cast<std::size_t>(kind)];
  return begin ? row.begin : row.end;
}

Subscriptions::Line::Line(Subscriptions& owner, Server& server)
    : owner_(owner),
      server_(server),
      connection_(server.borrow({.resp = 3, .db = owner.pool_.settings().redis_db})) {
  connection_->listen(this);
}

Subscriptions::Line::~Line() { close(); }

void Subscriptions::Line::add(Kind kind, std::string_view name, bool begin, std::uint64_t number) {
  unsent_kind_ = kind;
  unsent_begin_ = begin;
  unsent_.emplace_back(name);
  expected_.push_back(number);
  used_ = begin ? used_ + 1 : used_ - 1;
}

void Subscriptions::Line::send() {
  if (unsent_.empty()) return;
  const auto names = std::exchange(unsent_, {});
  std::string bytes;
  resp::append_command_header(bytes, names.size() + 1);
  resp::append_bulk(bytes, verb_of(unsent_kind_, unsent_begin_));
  for (const auto& name : names) resp::append_bulk(bytes, name);
  connection_->send_only(bytes);
}

std::optional<std::uint64_t> Subscriptions::Line::take_expected() {
  if (expected_.empty()) return std::nullopt;
  const auto number = expected_.front();
  expected_.pop_front();
  return number;
}

void Subscriptions::Line::give_back() {
  connection_->listen(nullptr);
  connection_.give_back();
}

void Subscriptions::Line::close() noexcept {
  if (connection_) connection_->listen(nullptr);
  connection_.reset();
}

}  // namespace sluice::proxy
