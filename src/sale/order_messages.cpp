#include "sluice/order_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/instant.hpp"
#include "base/json.hpp"
#include "base/json_value.hpp"
#include "base/random.hpp"
#include "base/sha1.hpp"
#include "sale/settlement.hpp"
#include "sale/store_of_sale.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds pauses[] = {5s, 5min, 30min, 2h, 5h, 10h, 24h};

/// That a receiver may ask for.
constexpr std::chrono::seconds longest_wait = 24h;

/// After the n-th attempt; empty: it was the last.
std::optional<std::chrono::seconds> pause_after(std::int64_t attempt) {
  if (attempt < 1 || attempt > std::ssize(pauses)) return std::nullopt;
  const auto pause = pauses[attempt - 1];
  const auto tenth = static_cast<std::uint64_t>(pause.count()) / 10;
  return pause + std::chrono::seconds{random_below(tenth + 1)};
}

/// What a message of the sale itself is about, as its data has it: of a bucket the whole sale.
std::string sale_in(const OrderMessage& message, const std::string& otherwise) {
  const auto data = JsonValue::parse(message.data, {});
  const auto* const sale = data ? data->find("sale") : nullptr;
  return sale && sale->as_text() ? *sale->as_text() : otherwise;
}

}  // namespace

OrderMessages::OrderMessages(OrderStore& orders, std::string sale, std::string source,
                             WebhookKeys keys, Send send)
    : orders_(orders),
      sale_(std::move(sale)),
      source_(std::move(source)),
      keys_(std::move(keys)),
      send_(std::move(send)) {}

/// The time of the signature is that of the sending, the time of the event that of the change. Who
/// is told removes repeats by the id: it is of one sale alone, and a name may have any bytes.
SignedMessage OrderMessages::sign(const OrderMessage& message) const {
  const bool is_of_sale = message.order_id == 0;
  auto id = is_of_sale ? fmt::format("sale-{}-{}", sha1_hex(sale_).substr(0, 16), message.seq)
                       : fmt::format("{}-{}", message.order_id, message.seq);
  if (!message.mark.empty()) id += "-" + message.mark;
  SignedMessage made;
  made.body = Json::object({{"specversion", "1.0"},
                            {"id", id},
                            {"source", source_},
                            {"type", message.type},
                            {"subject", is_of_sale ? sale_in(message, sale_)
                                                   : fmt::to_string(message.order_id)},
                            {"time", to_text(message.at)},
                            {"datacontenttype", "application/json"},
                            {"data", Json::raw(message.data)}})
                  .text();
  made.head = keys_.sign(std::move(id), orders_.wall(), made.body);
  return made;
}

Delivery OrderMessages::deliver(const OrderMessage& message) const {
  const auto made = sign(message);
  try {
    return send_(made);
  } catch (const std::exception& failure) {
    return {Delivery::failed, {}, failure.what()};
  }
}

OrderMessages::Sent OrderMessages::send_due(std::size_t most) {
  Sent sent;
  auto& outbox = orders_.payments();
  // One at a time: the lease of each begins when it is its turn.
  while (sent.done + sent.failed + sent.dead < most) {
    const auto due = outbox.take_messages(sale_, 1, lease);
    if (due.empty()) break;
    const auto& message = due.front();
    const auto delivery = deliver(message);
    switch (delivery.kind) {
      case Delivery::done:
        count(metrics().sale_messages_sent);
        sent.done += outbox.message_sent(sale_, message);
        break;
      case Delivery::gone:
        outbox.stop_messages(sale_);  // first: else another sender takes it meanwhile
        outbox.message_failed(sale_, message, 0s, delivery.why);
        sent.gone = true;
        return sent;
      case Delivery::failed:
        auto pause = pause_after(message.attempts);
        if (pause) pause = std::max(*pause, std::min(delivery.retry_after, longest_wait));
        count(metrics().sale_message_failures);
        if (!outbox.message_failed(sale_, message, pause, delivery.why)) break;
        ++(pause ? sent.failed : sent.dead);
        if (!pause) count(metrics().sale_messages_dead);
        break;
    }
  }
  return sent;
}

std::int64_t OrderMessages::replay() { return orders_.payments().replay_messages(sale_); }

namespace {

/// In the hash of what was settled outside: events of two providers may have one name.
std::string settled_field(const Refund& refund) {
  return refund.provider + ":" + refund_key(refund);
}

/// The store notes it before the database commits. Where the process dies in between, the next
/// sender goes on with it; where the database refuses it, nothing has happened. `settle` returns
/// whether it is settled by now.
template <class Settle>
bool settle_noted(Store& store, const Refund& refund, const std::string& by, Settle&& settle) {
  const auto key = sale::SaleKeys{refund.sale}.settled;
  const auto field = settled_field(refund);
  const bool is_new = store.run({"HSETNX", key, field, by}).get().as_integer() == 1;
  const auto forget = [&] { sale::after_commit([&] { store.run({"HDEL", key, field}).get(); }); };
  try {
    if (settle()) return true;
  } catch (const Error& failure) {
    if (is_new && failure.effect() == Effect::none) forget();
    throw;
  }
  forget();
  return false;
}

std::string named_by(const std::string& who, const std::string& why) {
  return fmt::format("by {}: {}", who, why);
}

/// No worker watches an archived sale: throws Error{database} where its database was restored from
/// before, and would give money back once more.
void refuse_rolled_back(Store& store, OrderStore& orders, const std::string& sale) {
  const auto reply = store
                         .run({"HMGET", sale::SaleKeys{sale}.sale, "archived",
                               sale::rolled_back_field, "home", "mark"})
                         .get();
  const auto& there = reply.as_items();
  if (there.at(0).is_null() || there.at(2).is_null() || there.at(3).is_null()) return;
  const StoreOfSale here{.id = there.at(2).as_text(), .place = store.describe()};
  if (there.at(1).is_null() && orders.sell_in(sale, here, there.at(3).as_text())) return;
  throw Error{Errc::database, sale::rolled_back(sale, orders.describe())};
}

/// True: it was settled outside before the database was restored, which is told so.
bool was_settled(Store& store, OrderPayments& payments, const Refund& refund) {
  const auto by =
      store.run({"HGET", sale::SaleKeys{refund.sale}.settled, settled_field(refund)}).get();
  if (by.is_null()) return false;
  log(LogLevel::warning,
      fmt::format("sale '{}': {} {} of payment '{}' of {} were settled before ({}), so no provider "
                  "is asked for them",
                  refund.sale, refund.amount, refund.currency, refund.event, refund.provider,
                  by.as_text()));
  payments.refund_done(refund, by.as_text());
  return true;
}

}  // namespace

bool settle_outside(Store& store, OrderStore& orders, const Refund& refund, const std::string& who,
                    const std::string& why) {
  if (refund.state != "asked") return false;
  const auto by = named_by(who, why);
  return settle_noted(store, refund, by, [&] {
    auto& payments = orders.payments();
    if (payments.refund_done(refund, by)) return true;
    return std::ranges::any_of(payments.refunds_of(refund.sale, refund.id), [&](const Refund& one) {
      return one.seq == refund.seq && one.state == "settled";
    });
  });
}

SettledPayment settle_outside(Store& store, OrderStore& orders, const PaymentPlace& place,
                              const std::string& who, const std::string& why,
                              const std::function<bool(PaymentState)>& may) {
  const auto settle = [&](const std::function<bool(PaymentState)>& if_in) {
    return orders.payments().settle_payment(place, PaymentState::settled, who, why, if_in);
  };
  auto result = settle([](PaymentState) { return false; });
  if (!result.payment || (may && !may(result.payment->state))) return result;
  const auto& [payment, state, note, received_at, attempts, failure, due] = *result.payment;
  const bool is_open = state == PaymentState::waiting || state == PaymentState::flagged ||
                       (state == PaymentState::refunding && !failure.empty());
  if (!is_open) return result;
  const Refund refund{.sale = payment.sale, .provider = place.provider, .event = place.event};
  settle_noted(store, refund, named_by(who, why), [&] {
    result = settle(may);
    return result.payment && result.payment->state == PaymentState::settled;
  });
  return result;
}

RefundsSent send_refunds(Store& store, OrderStore& orders, const std::string& sale,
                         const std::function<std::string(const Refund&)>& send, std::size_t most,
                         const std::string& provider) {
  RefundsSent sent;
  auto& payments = orders.payments();
  if (!sale.empty() && !payments.refunds(sale, 1).empty()) refuse_rolled_back(store, orders, sale);
  // One at a time, as messages.
  while (sent.done + sent.failed < most) {
    const auto refund = payments.take_refund(sale, provider, OrderMessages::lease);
    if (!refund) break;
    if (sale.empty()) refuse_rolled_back(store, orders, refund->sale);
    if (was_settled(store, payments, *refund)) {
      ++sent.done;
      continue;
    }
    std::string why;
    try {
      why = send(*refund);
    } catch (const std::exception& failure) {
      why = failure.what();
    }
    if (why.empty()) {
      sent.done += payments.refund_done(*refund);
      count(metrics().sale_refunds_sent);
    } else {
      payments.refund_failed(*refund, why, pause_after(refund->attempts + 1).value_or(24h));
      ++sent.failed;
      count(metrics().sale_refund_failures);
    }
  }
  return sent;
}

}  // namespace sluice
