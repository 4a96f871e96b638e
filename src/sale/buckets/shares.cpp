#include "sale/buckets/shares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/buckets/buckets.lua.hpp"
#include "sale/definition.hpp"
#include "sale/differences.hpp"
#include "sale/sums.hpp"
#include "sluice/log.hpp"
#include "store/reply_error.hpp"

namespace sluice::sale {
namespace {

std::int64_t number_of(const std::string& key, std::string_view field, std::string_view text) {
  const auto number = parse_integer<std::int64_t>(text);
  if (number && *number >= -most_units && *number <= most_units) return *number;
  throw Error{Errc::corrupt, fmt::format("{}: its {} is '{}', which no sale writes", key, field,
                                         shown(std::string{text}))};
}

/// "out:3" is about bucket 3.
std::optional<std::int64_t> other_bucket(std::string_view field, std::string_view prefix) {
  if (!field.starts_with(prefix)) return std::nullopt;
  return parse_integer<std::int64_t>(field.substr(prefix.size()));
}

/// A reply of the scripts `look` and `freeze`.
Share share_of(const std::string& key, const Value& reply) {
  Share share;
  if (reply.is_null()) return share;
  const auto& items = reply.as_items();
  share.is_there = true;
  share.is_shut = items.at(0).as_integer() == 1;
  for (std::size_t i = 1; i + 1 < items.size(); i += 2) {
    const auto& field = items[i].as_text();
    const auto& value = items[i + 1].as_text();
    const auto number = [&] { return number_of(key, field, value); };
    if (field == "capacity") share.capacity = number();
    if (field == "sold") share.sold = number();
    if (field == "defined") share.stock = number();
    if (field == "added") share.added = number();
    if (field == "given_back") share.given_back = number();
    if (field == "moves") share.moves = value;
    if (field == "frozen") share.is_frozen = true;
    if (const auto donor = other_bucket(field, "in:")) share.in[*donor] = number();
    if (const auto receiver = other_bucket(field, "out:")) {
      const auto space = std::min(value.find(' '), value.size() - 1);
      share.out[*receiver] = {.n = number_of(key, field, value.substr(0, space)),
                              .units = number_of(key, field, value.substr(space + 1))};
    }
  }
  return share;
}

/// The same where it may be an error.
Share share_of_reply(const std::string& key, const Value& reply) {
  if (!reply.is_error()) return share_of(key, reply);
  Share unknown;
  unknown.failure = error_of_reply(reply.as_text());
  return unknown;
}

std::string text_of(std::int64_t number) { return fmt::to_string(number); }

}  // namespace

bool Look::is_whole() const noexcept {
  return std::ranges::all_of(shares, [&](const Share& share) {
    return share.is_known() && share.moves == shares.front().moves;
  });
}

std::optional<Transfer> Look::under_way(std::int64_t donor, std::int64_t receiver) const {
  const auto& from = at(donor);
  const auto& to = at(receiver);
  if (!from.is_known() || !to.is_known() || from.moves != to.moves) return std::nullopt;
  const auto given = from.out.find(receiver);
  if (given == from.out.end() || to.taken_from(donor) >= given->second.n) return std::nullopt;
  return given->second;
}

std::int64_t Look::units_under_way() const {
  std::int64_t units = 0;
  for (std::int64_t donor = 0; donor < std::ssize(shares); ++donor)
    for (std::int64_t receiver = 0; receiver < std::ssize(shares); ++receiver)
      if (const auto transfer = under_way(donor, receiver)) units = sum(units, transfer->units);
  return units;
}

std::int64_t Look::left() const {
  auto units = units_under_way();
  for (const auto& share : shares)
    if (share.is_known()) units = sum(units, share.left());
  return units;
}

std::int64_t Look::capacity() const {
  std::int64_t units = 0;
  for (const auto& share : shares) units = sum(units, share.capacity);
  return units;
}

std::int64_t Look::stock() const {
  std::int64_t units = 0;
  for (const auto& share : shares) units = sum(units, sum(share.stock, share.added));
  return units;
}

bool Look::nothing_came_since(const Look& first) const {
  return std::ranges::equal(shares, first.shares, [](const Share& one, const Share& two) {
    return one.is_shut == two.is_shut && one.moves == two.moves && one.out == two.out &&
           one.in == two.in && one.added == two.added && one.given_back == two.given_back;
  });
}

Shares::Shares(Store& store, const SaleDefinition& whole, std::int64_t count)
    : store_(store), name_(whole.name) {
  for (std::int64_t i = 0; i < count; ++i)
    keys_.push_back(SaleKeys{bucket_name(whole.name, i)}.sale);
}

Task<Share> Shares::look_at(const std::string& key) {
  try {
    auto asked = store_.run(scripts::sale_buckets_look, {key}, {}, repeatable);
    const Value reply = co_await asked;
    co_return share_of(key, reply);
  } catch (const Error& failure) {
    Share unknown;
    unknown.failure = failure;
    co_return unknown;
  }
}

Task<Look> Shares::look() {
  Look look;
  try {
    Batch batch;
    for (const auto& key : keys_) {
      const std::string_view name = key;
      batch.add(scripts::sale_buckets_look, Words{&name, 1}, {});
    }
    const std::vector<Value> replies = co_await store_.run(std::move(batch), repeatable);
    for (std::size_t i = 0; i < keys_.size(); ++i)
      look.shares.push_back(share_of_reply(keys_[i], replies.at(i)));
    co_return look;
  } catch (const Error&) {
    look.shares.clear();  // a server does not answer: which one it is, is asked below
  }
  for (const auto& key : keys_) {
    auto asked = look_at(key);
    look.shares.push_back(co_await asked);
  }
  co_return look;
}

Task<std::optional<Look>> Shares::look_at_one_instant() {
  constexpr int looks = 10;
  auto asked = look();
  Look before = co_await asked;
  for (int i = 0; i < looks; ++i) {
    auto asked_again = look();
    Look now = co_await asked_again;
    if (now.nothing_came_since(before)) co_return before;
    before = std::move(now);
  }
  co_return std::nullopt;
}

Task<std::optional<Transfer>> Shares::give(std::int64_t donor, std::int64_t receiver,
                                           std::int64_t needed, const Look& look) {
  const auto& own = look.at(receiver);
  const auto to = text_of(receiver);
  const auto units = text_of(needed);
  const auto before = text_of(own.taken_from(donor));
  auto asked = store_.run(scripts::sale_buckets_give, {key(donor)}, {own.moves, to, units, before},
                          repeatable);
  const Value reply = co_await asked;
  const Transfer given{.n = reply.as_items().at(0).as_integer(),
                       .units = reply.as_items().at(1).as_integer()};
  if (given.n < 0) co_return std::nullopt;
  co_return given;
}

Task<bool> Shares::take(std::int64_t donor, std::int64_t receiver, Transfer transfer,
                        const Look& look) {
  const auto from = text_of(donor);
  const auto n = text_of(transfer.n);
  const auto units = text_of(transfer.units);
  auto asked = store_.run(scripts::sale_buckets_take, {key(receiver)},
                          {look.at(receiver).moves, from, n, units}, repeatable);
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

namespace {

/// One restoration. Nothing of it is remembered but in the buckets.
class Restoration {
 public:
  Restoration(Store& store, const SaleDefinition& bucket)
      : store_(store),
        sale_(whole_name(bucket.name)),
        shares_(store, whole_definition(bucket), bucket.bucket->count) {}

  bool run();

 private:
  Look freeze(const Look& seen);
  void undo_transfers(Look& look) const;
  void share_out(Look& look) const;
  void set(std::int64_t bucket, std::int64_t capacity);
  void thaw(std::int64_t bucket);
  [[noreturn]] void give_up(std::int64_t bucket) const;

  Store& store_;
  const std::string sale_;
  Shares shares_;
  const std::string word_ = random_hex_128();
};

bool is_lost(const Share& share) { return share.moves.empty(); }

bool Restoration::run() {
  const auto now = shares_.look().get();
  for (const auto& share : now.shares)
    if (share.failure) throw *share.failure;
  if (std::ranges::any_of(now.shares,
                          [](const Share& share) { return !share.is_there || share.is_shut; }))
    return false;
  const auto is_frozen = [](const Share& share) { return share.is_frozen; };
  if (now.is_whole() && std::ranges::none_of(now.shares, is_frozen)) return true;

  auto look = freeze(now);
  undo_transfers(look);
  share_out(look);
  // All before the first one thaws: else two restorations at once could leave buckets of two words.
  for (std::int64_t i = 0; i < shares_.count(); ++i) set(i, look.at(i).capacity);
  for (std::int64_t i = 0; i < shares_.count(); ++i) thaw(i);
  log(LogLevel::warning, fmt::format("sale '{}': the shares of its buckets are restored", sale_));
  return true;
}

void Restoration::give_up(std::int64_t bucket) const {
  throw Error{
      Errc::server,
      fmt::format("sale '{}': bucket {} changed in {}, or another recovery has begun, while "
                  "shares were restored; recover it once more",
                  sale_, bucket, store_.describe())};
}

/// From here on a bucket's transfers, and its capacity, stay as they are read.
Look Restoration::freeze(const Look& seen) {
  Look look;
  for (std::int64_t i = 0; i < shares_.count(); ++i) {
    const auto& key = shares_.key(i);
    const auto reply =
        store_.run(scripts::sale_buckets_freeze, {key}, {word_, seen.at(i).moves}, repeatable)
            .get();
    if (reply.is_null()) give_up(i);
    look.shares.push_back(share_of(key, reply));
  }
  return look;
}

/// Units on their way to a bucket that lost nothing go back: it does not have them, and does not
/// get them any more. One that lost something may have had them, and sold them: it gets the rest.
void Restoration::undo_transfers(Look& look) const {
  for (std::int64_t donor = 0; donor < shares_.count(); ++donor) {
    auto& share = look.shares[static_cast<std::size_t>(donor)];
    for (std::int64_t receiver = 0; receiver < shares_.count(); ++receiver)
      if (const auto transfer = look.under_way(donor, receiver))
        share.capacity = sum(share.capacity, transfer->units);
  }
}

/// What the others do not have, in equal parts. Where none is lost, a restoration that died has
/// left units that are in no share; they are nobody's, since no transfer of before is taken now.
void Restoration::share_out(Look& look) const {
  auto rest = difference(look.stock(), look.capacity());
  if (rest < 0)
    throw Error{Errc::corrupt,
                fmt::format("sale '{}': its buckets have {} units more than the {} of its stock; "
                            "'sluice sale audit {}' names what is damaged",
                            sale_, -rest, look.stock(), sale_)};
  auto lost = std::ranges::count_if(look.shares, is_lost);
  if (lost == 0) look.shares.front().capacity += rest;
  for (auto& share : look.shares) {
    if (!is_lost(share)) continue;
    const auto part = rest / lost--;
    share.capacity += part;
    rest -= part;
  }
}

void Restoration::set(std::int64_t bucket, std::int64_t capacity) {
  const auto units = text_of(capacity);
  const auto done =
      store_.run(scripts::sale_buckets_set_share, {shares_.key(bucket)}, {word_, units}, repeatable)
          .get();
  if (done.as_integer() != 1) give_up(bucket);
}

void Restoration::thaw(std::int64_t bucket) {
  const auto done =
      store_.run(scripts::sale_buckets_thaw, {shares_.key(bucket)}, {word_}, repeatable).get();
  if (done.as_integer() != 1) give_up(bucket);
}

}  // namespace

bool restore_shares(Store& store, const SaleDefinition& bucket) {
  return Restoration{store, bucket}.run();
}

}  // namespace sluice::sale
