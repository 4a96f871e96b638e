#include "server/messenger.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/thread.hpp"
#include "http/text.hpp"
#include "sale/payment_text.hpp"
#include "sluice/log.hpp"

namespace sluice::server {
namespace {

HttpFields fields_of(const WebhookHead& head) {
  return {{"Content-Type", "application/cloudevents+json"},
          {"webhook-id", head.id},
          {"webhook-timestamp", head.timestamp},
          {"webhook-signature", head.signature}};
}

bool is_success(int status) { return status / 100 == 2; }

std::string answered(const std::string& url, const HttpAnswer& answer) {
  return fmt::format("{} answered {}{}{}", origin_of(url), answer.status,
                     answer.status / 100 == 3 ? "; redirects are not followed" : "",
                     sale::words_of(answer.body));
}

}  // namespace

std::optional<Messenger::Subject> Messenger::Rounds::next(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    const auto now = system_clock().steady();
    if (!begun_ || now >= *begun_ + every_) {
      begun_ = now;
      if (has_payments_) add(Subject{});
      for (const auto& offer : shop_.all())  // messages are left by sales with a price alone
        if (offer->sale().definition().payment) add(*offer);
    }
    if (!left_.empty()) {
      auto subject = std::move(left_.front());
      left_.pop_front();
      waiting_.erase(subject.rows);
      return subject;
    }
    changed_.wait_for(lock, stop, *begun_ + every_ - now, [this] { return !left_.empty(); });
  }
  return std::nullopt;
}

void Messenger::Rounds::again(Subject subject) {
  const std::lock_guard lock{mutex_};
  add(std::move(subject));
  changed_.notify_one();
}

/// Ids of messages are unique in a source: those of buckets are sources of their own.
void Messenger::Rounds::add(Offer& offer) {
  const auto path = "/v1/sales/" + http::escape(offer.name());
  const auto parts = offer.sale().parts();
  for (std::size_t i = 0; i < parts.size(); ++i)
    add({.sale = offer.name(),
         .rows = parts[i]->definition().name,
         .source = parts.size() == 1 ? path : fmt::format("{}#{}", path, i)});
}

/// Who waits already keeps his place.
void Messenger::Rounds::add(Subject subject) {
  if (waiting_.insert(subject.rows).second) left_.push_back(std::move(subject));
}

Messenger::Messenger(Shop& shop, MessengerOptions options)
    : shop_(shop), options_(std::move(options)) {
  if (options_.messages) {
    const auto rounds = std::make_shared<Rounds>(shop_, options_.every);
    for (std::size_t i = 0; i < options_.senders; ++i)
      begin(rounds, [this](const At& at) { return send_message(at); });
  }
  for (const auto& target : options_.refunds)
    begin(std::make_shared<Rounds>(shop_, options_.every, true),
          [this, &target](const At& at) { return send_refund(at, target); });
}

Messenger::~Messenger() { stop(); }

void Messenger::stop() {
  for (auto& thread : threads_) thread.request_stop();
}

void Messenger::begin(std::shared_ptr<Rounds> rounds, Send send) {
  threads_.push_back(
      start_stoppable_thread([this, rounds = std::move(rounds), send = std::move(send)](
                                 const std::stop_token& stop) { work(stop, *rounds, send); }));
}

void Messenger::work(const std::stop_token& stop, Rounds& rounds, const Send& send) {
  std::unique_ptr<OrderStore> orders;
  HttpClient client{options_.http};
  const std::stop_callback cut{stop, [&client] { client.stop(); }};
  while (const auto subject = rounds.next(stop)) try {
      // Another store has it, or its database came back from before: nothing is sent from here.
      if (!shop_.trouble_of(subject->rows).empty()) continue;
      if (!orders)
        orders = open_order_store(shop_.options().orders,
                                  {.answer = shop_.options().longest_call, .makes_file = false});
      if (send({*orders, client, *subject})) rounds.again(*subject);
    } catch (const std::exception& failure) {
      complain("what is to be sent cannot be read", failure.what());
    }
}

bool Messenger::send_message(const At& at) {
  const auto send = [&](const SignedMessage& message) { return deliver(at.client, message); };
  OrderMessages messages{at.orders, at.subject.rows, at.subject.source, options_.messages->keys,
                         send};
  const auto sent = messages.send_due(1);
  if (sent.gone) {
    stop_whole(at);
    log(LogLevel::warning,
        fmt::format("sale '{}': {} answered 410, so nothing more is sent until its messages are "
                    "replayed",
                    at.subject.sale, origin_of(options_.messages->url)));
  }
  if (sent.dead > 0)
    log(LogLevel::error,
        fmt::format("sale '{}': a message was sent in vain for days, and is dead until its "
                    "messages are replayed",
                    at.subject.sale));
  return sent.done > 0;
}

/// Who answers 410 means the sale, and knows nothing of its buckets.
void Messenger::stop_whole(const At& at) {
  const auto offer = shop_.find(at.subject.sale);
  if (!offer) return;
  for (const auto* const part : offer->sale().parts())
    at.orders.payments().stop_messages(part->definition().name);
}

Delivery Messenger::deliver(HttpClient& client, const SignedMessage& message) {
  const auto& url = options_.messages->url;
  Delivery failed = Delivery::failed;
  try {
    const auto answer = client.post(url, fields_of(message.head), message.body);
    if (is_success(answer.status)) return Delivery::done;
    failed.retry_after = answer.retry_after;
    failed.why = answered(url, answer);
    if (answer.status == 410) return {Delivery::gone, {}, failed.why};
  } catch (const Error& failure) {
    failed.why = failure.message();
  }
  complain("messages", failed.why);
  return failed;
}

bool Messenger::send_refund(const At& at, const RefundTarget& target) {
  const auto send = [&](const Refund& refund) { return give_back(at, target, refund); };
  const auto& provider = target.provider->name();
  std::string why;
  const auto sent = send_refunds(
      shop_.store(), at.orders, at.subject.rows,
      [&](const Refund& refund) { return why = send(refund); }, 1, provider);
  if (sent.failed > 0) complain("refunds of " + provider, why);
  return sent.done > 0;
}

std::string Messenger::give_back(const At& at, const RefundTarget& target,
                                 const Refund& refund) const {
  auto of_sale = refund;
  if (refund.id != 0) of_sale.sale = at.subject.sale;
  try {
    const auto asked = target.provider->refund(of_sale, at.orders.wall());
    const auto answer = at.client.post(target.url, asked.fields, asked.body);
    const auto why = target.provider->refusal_of(answer.status, answer.body);
    return why.empty() ? why : fmt::format("{} {}", origin_of(target.url), why);
  } catch (const Error& failure) {
    return failure.message();
  }
}

/// It is sent again in any case; one line a second is enough.
void Messenger::complain(std::string_view of, std::string_view why) {
  const std::lock_guard lock{mutex_};
  if (line_.is_due(system_clock().steady()))
    log(LogLevel::warning, fmt::format("{}: {}; it is tried again", of, why));
}

}  // namespace sluice::server
