#include "sale/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/integer.hpp"
#include "sale/records.lua.hpp"
#include "sale/sums.hpp"
#include "sluice/id.hpp"

namespace sluice::sale {
namespace {

struct StateRow {
  OrderState state;
  char letter;  ///< in the text of an order
  std::string_view name;
};

constexpr StateRow states[] = {
    {OrderState::awaiting, 'a', "awaiting"}, {OrderState::cancelled, 'c', "cancelled"},
    {OrderState::paid, 'p', "paid"},  // of no text: see in_store()
    {OrderState::expired, 'e', "expired"},   {OrderState::refunding, 'r', "refunding"},
    {OrderState::refunded, 'f', "refunded"},  // of no text
};

const StateRow& row_of(OrderState state) noexcept {
  return states[static_cast<std::size_t>(state)];
}

/// Takes the words of a line off its front.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  std::string_view word() noexcept {
    const auto end = rest_.find(' ');
    if (end == std::string_view::npos) {
      complete_ = false;
      return {};
    }
    const auto word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }

  /// 0 to `most`, written as admit.lua does.
  std::int64_t integer(std::int64_t most) noexcept {
    const auto text = word();
    const auto number = parse_integer<std::int64_t>(text).value_or(-1);
    if (number < 0 || number > most || (text.front() == '0' && text.size() > 1)) complete_ = false;
    return number;
  }

  bool complete() const noexcept { return complete_; }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
  bool complete_ = true;
};

std::optional<BuyerRecord> record_of(std::string_view text, std::string buyer) {
  WordReader reader{text};
  const auto live = reader.integer(most_units);
  const auto units = reader.integer(most_units);
  if (!reader.complete()) return std::nullopt;
  auto latest = order_of(reader.rest(), std::move(buyer));
  if (!latest) return std::nullopt;
  return BuyerRecord{.live = live, .units = units, .latest = std::move(*latest)};
}

/// The field of {NAME}:requests.
std::string place_of(const std::string& buyer, const std::string& request) {
  return fmt::format("{}:{}{}", buyer.size(), buyer, request);
}

/// The order at such a field. Empty: there stands none.
std::optional<SaleOrder> earlier_order(std::string_view place, const std::string& text) {
  const auto colon = place.find(':');
  const auto size = parse_integer<std::size_t>(place.substr(0, colon));
  if (!size || *size >= place.size() - colon) return std::nullopt;
  const auto request = std::string{place.substr(colon + 1 + *size)};
  auto order = order_of(text + request, std::string{place.substr(colon + 1, *size)});
  if (!order || order->request.value != request) return std::nullopt;
  return order;
}

/// The items of a batch that must all have succeeded.
const Value& checked(const Value& reply) {
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

}  // namespace

OrderState in_store(OrderState state) noexcept {
  if (state == OrderState::paid) return OrderState::awaiting;
  return state == OrderState::refunded ? OrderState::refunding : state;
}

bool is_same_state(OrderState record, OrderState row) noexcept {
  const auto expected = in_store(row);
  const bool was_unpaid = record == OrderState::cancelled || record == OrderState::expired;
  return record == expected || (expected == OrderState::refunding && was_unpaid);
}

std::optional<SaleOrder> order_of(std::string_view text, std::string buyer) {
  WordReader reader{text};
  const auto letter = reader.word();
  const auto* const state =
      std::find_if(std::begin(states), std::end(states), [&](const StateRow& row) {
        return letter == std::string_view{&row.letter, 1} && in_store(row.state) == row.state;
      });
  constexpr std::int64_t most_seconds = 0x7fff'ffff;
  constexpr std::int64_t most_sequence = 0xffff'ffff;
  const auto n = reader.integer(most_units);
  const auto sequence = reader.integer(most_sequence);
  const auto number = reader.word();
  const auto units = reader.integer(most_units);
  const auto issued_us = reader.integer(std::numeric_limits<std::int64_t>::max());
  const WallTime issued_at{std::chrono::microseconds{issued_us}};
  const auto second = std::chrono::floor<std::chrono::seconds>(issued_at);
  const bool plausible = state != std::end(states) && n >= 1 && units >= 1 &&
                         second >= IdWorker::epoch &&
                         (second - IdWorker::epoch).count() <= most_seconds;
  if (!reader.complete() || !plausible || number.empty() || buyer.empty() || reader.rest().empty())
    return std::nullopt;
  const IdParts parts{.issued_at = second, .sequence = static_cast<std::uint32_t>(sequence)};
  return SaleOrder{.number = std::string{number},
                   .id = IdWorker::compose(parts),
                   .units = units,
                   .buyer = {std::move(buyer)},
                   .n = n,
                   .issued_at = issued_at,
                   .request = {std::string{reader.rest()}},
                   .state = state->state};
}

std::string text_of(const SaleOrder& order) {
  const auto parts = IdWorker::parts(order.id);
  auto text = fmt::format("{} {} {} {} {} {} {}", row_of(in_store(order.state)).letter, order.n,
                          parts.sequence, order.number, order.units,
                          order.issued_at.time_since_epoch().count(), order.request.value);
  auto written = order;
  written.state = in_store(order.state);
  if (order_of(text, order.buyer.value) != written)
    throw Error{Errc::corrupt, fmt::format("order {} with id {} is none that a sale gives",
                                           order.number, order.id)};
  return text;
}

Task<Records::Page> Records::scan(std::string from, std::size_t most) {
  constexpr std::string_view of_requests = "requests ";  // the cursor of the second hash
  std::string_view cursor = from.empty() ? std::string_view{"0"} : std::string_view{from};
  const bool earlier = cursor.starts_with(of_requests);
  if (earlier) cursor.remove_prefix(of_requests.size());
  const auto count = fmt::to_string(most);
  const auto& hash = earlier ? keys_.requests : keys_.buyers;
  auto asked = store_.run({"HSCAN", hash, cursor, "COUNT", count});
  const Value reply = co_await asked;
  const auto& fields = reply.as_items().at(1).as_items();
  Page page;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const auto& field = fields[i].as_text();
    const auto& value = fields[i + 1].as_text();
    if (earlier) {
      auto order = earlier_order(field, value);
      if (order)
        page.earlier.push_back(std::move(*order));
      else
        page.damaged.push_back("requests: " + field);
    } else if (auto record = record_of(value, field)) {
      page.buyers.push_back(std::move(*record));
    } else {
      page.damaged.push_back("buyers: " + field);
    }
  }
  const auto& next = reply.as_items().at(0).as_text();
  if (next != "0")
    page.next = earlier ? std::string{of_requests} + next : next;
  else if (!earlier)
    page.next = std::string{of_requests} + "0";
  co_return page;
}

Task<std::vector<std::optional<SaleOrder>>> Records::find(std::span<const Wish> wishes) {
  std::vector<std::optional<SaleOrder>> orders;
  if (wishes.empty()) co_return orders;
  std::vector<std::string> places;
  places.reserve(wishes.size());
  for (const auto& wish : wishes) places.push_back(place_of(wish.buyer.value, wish.request.value));
  std::vector<std::string_view> buyers{"HMGET", keys_.buyers};
  for (const auto& wish : wishes) buyers.push_back(wish.buyer.value);
  std::vector<std::string_view> requests{"HMGET", keys_.requests};
  requests.insert(requests.end(), places.begin(), places.end());
  Batch batch;
  batch.add(Words{buyers}).add(Words{requests});
  const std::vector<Value> replies = co_await store_.run(std::move(batch));
  const auto& records = checked(replies.at(0)).as_items();
  const auto& earlier = checked(replies.at(1)).as_items();
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const auto& [buyer, request] = wishes[i];
    std::optional<SaleOrder> order;
    if (!earlier.at(i).is_null()) {
      order = earlier_order(places[i], earlier[i].as_text());
    } else if (!records.at(i).is_null()) {
      if (auto record = record_of(records[i].as_text(), buyer.value)) order = record->latest;
    }
    if (order && order->request != request) order.reset();
    orders.push_back(std::move(order));
  }
  co_return orders;
}

Task<std::vector<std::optional<BuyerRecord>>> Records::find(std::span<const BuyerId> buyers) {
  std::vector<std::optional<BuyerRecord>> records;
  if (buyers.empty()) co_return records;
  std::vector<std::string_view> words{"HMGET", keys_.buyers};
  for (const auto& buyer : buyers) words.push_back(buyer.value);
  const Value reply = co_await store_.run(Words{words});
  for (std::size_t i = 0; i < buyers.size(); ++i) {
    const auto& text = reply.as_items().at(i);
    records.push_back(text.is_null() ? std::nullopt : record_of(text.as_text(), buyers[i].value));
  }
  co_return records;
}

std::string Records::refuse_number(const SaleOrder& order) const {
  constexpr std::size_t label_size = 8;  // yyyymmdd
  const std::string_view number = order.number;
  if (number.size() == type_.size() + label_size + digits_ && number.starts_with(type_) &&
      is_digits(number.substr(type_.size())))
    return {};
  return fmt::format("has a number of another sale: here they are {}, a day and {} digits", type_,
                     digits_);
}

Task<std::int64_t> Records::put(std::span<const SaleOrder> orders, std::string_view token,
                                Source source) {
  std::vector<std::string> texts;
  for (const auto& order : orders) {
    texts.push_back(text_of(order));
    if (const auto why = refuse_number(order); !why.empty())
      throw Error{Errc::corrupt, fmt::format("sale '{}': order {} {}", name_, order.number, why)};
  }
  static constexpr std::string_view sources[] = {"0", "1", "2"};
  std::vector<std::string_view> args{token, sources[static_cast<std::size_t>(source)]};
  args.reserve(2 + 2 * orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i)
    args.insert(args.end(), {orders[i].buyer.value, texts[i]});
  const std::vector<std::string_view> keys{keys_.sale, keys_.buyers, keys_.requests};
  const Value written =
      co_await store_.run(scripts::sale_put, Words{keys}, Words{args}, repeatable);
  if (written.as_integer() < 0)
    throw Error{Errc::server, fmt::format("sale '{}': another recovery of it has begun", name_)};
  co_return written.as_integer();
}

Task<Records::Returned> Records::give_back(OrderReturn what) {
  const auto key = fmt::format("{}:{}", what.order.id, what.seq);
  const auto units = fmt::to_string(what.units);
  // A retake may have been asked for since then, and the order be on its way to stand again.
  const auto ended = stands(what.order.state) ? OrderState::expired : in_store(what.order.state);
  const char letter = row_of(what.ends ? ended : OrderState::awaiting).letter;
  auto asked = store_.run(scripts::sale_give_back,
                          {keys_.sale, keys_.buyers, keys_.requests, keys_.returned},
                          {what.order.buyer.value, what.order.request.value, what.order.number, key,
                           units, std::string_view{&letter, 1}},
                          repeatable);
  const Value reply = co_await asked;
  switch (reply.as_integer()) {
    case 1: co_return Returned::now;
    case 0: co_return Returned::before;
    case -2: co_return Returned::archived;
    case -3: co_return Returned::shut;
    default: co_return Returned::unknown;
  }
}

Task<Records::Retaken> Records::take_again(OrderReturn what) {
  const auto key = fmt::format("{}:{}", what.order.id, what.seq);
  const auto units = fmt::to_string(-what.units);
  auto asked = store_.run(
      scripts::sale_take_again, {keys_.sale, keys_.buyers, keys_.requests, keys_.returned},
      {what.order.buyer.value, what.order.request.value, what.order.number, key, units},
      repeatable);
  const Value reply = co_await asked;
  switch (reply.as_integer()) {
    case 1: co_return Retaken::taken;
    case 0: co_return Retaken::refused;
    case -3: co_return Retaken::shut;
    default: co_return Retaken::unknown;
  }
}

Task<bool> Records::take_out(SaleOrder order) {
  const auto place = place_of(order.buyer.value, order.request.value);
  const auto units = fmt::to_string(order.units);
  for (;;) {
    auto asked = store_.run({"HGET", keys_.buyers, order.buyer.value});
    const Value there = co_await asked;
    if (there.is_null()) co_return false;
    auto record = record_of(there.as_text(), order.buyer.value);
    const Wish wish{order.buyer, order.request};
    auto looked = find(std::span{&wish, 1});
    const auto found = co_await looked;
    if (!record || found.front() != order) co_return false;
    const bool is_latest = record->latest == order;
    bool is_only = is_latest && order.n == 1 && record->live == 1;
    std::string gone = place;
    if (is_latest && !is_only) {
      auto next = latest_but(order);
      record->latest = co_await next;
      is_only = record->latest.n == 0;
      gone = place_of(order.buyer.value, record->latest.request.value);
    }
    std::string text;
    if (!is_only)
      text = fmt::format("{} {} {}", std::max<std::int64_t>(record->live - 1, 0),
                         std::max<std::int64_t>(record->units - order.units, 0),
                         text_of(record->latest));
    auto removed = store_.run(scripts::sale_take_out, {keys_.sale, keys_.buyers, keys_.requests},
                              {order.buyer.value, there.as_text(), text, gone, units});
    const Value answer = co_await removed;
    if (answer.as_integer() == 1) co_return true;
    if (answer.as_integer() < 0)
      throw Error{
          Errc::server,
          fmt::format("sale '{}' has to be recovered first: see 'sluice sale recover'", name_)};
  }
}

/// The latest of a buyer's orders without this one; n is 0 where he has no other.
Task<SaleOrder> Records::latest_but(SaleOrder but) {
  SaleOrder latest{};
  std::string from = "requests 0";
  do {
    auto asked = scan(std::move(from), page_size);
    Page page = co_await asked;
    for (auto& order : page.earlier)
      if (order.buyer == but.buyer && order.request != but.request && order.n > latest.n)
        latest = std::move(order);
    from = std::move(page.next);
  } while (!from.empty());
  co_return latest;
}

Task<bool> Records::remove_some(std::size_t most) {
  const std::string* const hashes[] = {&keys_.requests, &keys_.buyers, &keys_.returned};
  const auto count = fmt::to_string(most);
  for (; removing_ < std::size(hashes); ++removing_, remove_from_ = "0") {
    auto asked =
        store_.run(scripts::sale_remove, {*hashes[removing_]}, {remove_from_, count}, repeatable);
    const Value next = co_await asked;
    if (next.is_null()) continue;
    remove_from_ =
        next.as_text();  // from the beginning each time it would pass over all it emptied
    co_return true;
  }
  co_return false;
}

}  // namespace sluice::sale

std::string_view sluice::to_string(OrderState state) noexcept { return sale::row_of(state).name; }
