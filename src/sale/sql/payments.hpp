/// OrderPayments on a SQL database, written once for all of them. The class is spread over
/// payments.cpp, settled_payments.cpp, refunds.cpp and messages.cpp by subject.
#pragma once

#include <string>
#include <vector>

#include "sale/sql/sale_transaction.hpp"
#include "sluice/order_payments.hpp"

namespace sluice::sale {

/// Why something failed, as far as a note has room for it: whole characters.
std::string shortened(const std::string& why);

/// When the receiver of a sale's messages wanted no more of them; 0: it takes them.
long long stopped_at(soci::session& sql, long long sale);

class SqlOrderPayments final : public OrderPayments {
 public:
  /// REQUIRES: they live longer.
  explicit SqlOrderPayments(SqlSessions& sessions) : sessions_(sessions) {}

  std::optional<PayableOrder> find(const std::string& sale, std::int64_t id) override;
  std::vector<PayableOrder> find(const std::string& sale,
                                 std::span<const std::int64_t> ids) override;
  bool keep(const Payment& payment) override;
  PaymentResult apply(const Payment& payment) override;
  std::vector<KeptPayment> list(const std::string& sale, PaymentState state, std::size_t most,
                                const std::optional<PaymentPlace>& after) override;
  std::vector<KeptPayment> payments_of(const std::string& sale, const SaleOrder& order) override;
  std::int64_t payments_of_no_sale() override;
  SettledPayment settle_payment(const PaymentPlace& place, PaymentState to, const std::string& who,
                                const std::string& why,
                                const std::function<bool(PaymentState)>& may) override;
  void hold(const std::string& sale, std::int64_t id) override;
  std::vector<Payment> ready(const std::string& sale, std::size_t most) override;
  std::vector<std::int64_t> due(const std::string& sale, std::size_t most) override;
  bool expire(const std::string& sale, std::int64_t id) override;
  std::size_t expire_all(const std::string& sale, std::span<const std::int64_t> ids) override;
  UnitsResult cancel_units(const std::string& sale, std::int64_t id, std::int64_t units,
                           const std::string& key, const std::string& reason) override;
  bool end_retake(const std::string& sale, std::int64_t id, std::int64_t seq, bool taken) override;
  std::vector<Refund> refunds(const std::string& sale, std::size_t most) override;
  std::vector<Refund> refunds(const std::string& sale, const std::string& state,
                              const MessagePlace& after, std::size_t most) override;
  bool resend_refund(const std::string& sale, const MessagePlace& place) override;
  std::optional<Refund> take_refund(const std::string& sale, const std::string& provider,
                                    std::chrono::seconds lease) override;
  std::vector<Refund> refunds_of(const std::string& sale, std::int64_t id) override;
  bool refund_done(const Refund& refund, const std::string& settled_by) override;
  void refund_failed(const Refund& refund, const std::string& why,
                     std::chrono::seconds again_in) override;
  std::vector<OrderMessage> take_messages(const std::string& sale, std::size_t most,
                                          std::chrono::seconds lease) override;
  bool message_sent(const std::string& sale, const OrderMessage& message) override;
  bool message_failed(const std::string& sale, const OrderMessage& message,
                      std::optional<std::chrono::seconds> again_in,
                      const std::string& why) override;
  void stop_messages(const std::string& sale) override;
  std::int64_t replay_messages(const std::string& sale) override;
  std::int64_t resend_message(const std::string& sale, const MessagePlace& place) override;
  std::int64_t resume_messages(const std::string& sale) override;
  std::vector<OrderMessage> messages(const std::string& sale, const std::string& state,
                                     const MessagePlace& after, std::size_t most) override;
  std::vector<OrderMessage> messages_of(const std::string& sale, std::int64_t id) override;
  std::vector<DayTotal> by_day(const std::string& sale, std::chrono::minutes offset) override;
  std::vector<DayMoney> money_by_day(const std::string& sale, std::chrono::minutes offset) override;
  std::vector<OrderMoney> money_of(const std::string& sale,
                                   std::span<const std::int64_t> ids) override;
  PaymentTotals totals(const std::string& sale) override;

 private:
  const SqlDialect& dialect() const noexcept { return sessions_.dialect(); }
  /// Runs `work(SaleTransaction&)` with the row of the sale locked; commits when it returns true.
  template <class Do>
  bool changing(const std::string& sale, Do&& work);
  static std::optional<KeptPayment> kept(soci::session& sql, const Payment& payment);
  static std::int64_t end_unpaid(const SaleTransaction& in, std::int64_t id, long long due_us);
  static bool is_repeat(const SaleTransaction& in, const OrderRow& row, std::int64_t asked,
                        const std::string& key, UnitsResult& result);
  static std::vector<Refund> fetch_refunds(soci::session& sql, long long in_sale,
                                           const std::string& sale, const std::string& where,
                                           std::size_t most);
  std::vector<Refund> fetch_refunds(const std::string& sale, const std::string& where,
                                    std::size_t most);
  // settled_payments.cpp
  bool settle_kept(Connection& at, const KeptPayment& there, PaymentState to,
                   const std::string& who_and_why, bool is_in_vain) const;
  std::optional<Refund> take_payment_refund(const std::string& provider,
                                            std::chrono::seconds lease);
  bool payment_refund_done(const Refund& refund, const std::string& settled_by);
  void payment_refund_failed(const Refund& refund, const std::string& why,
                             std::chrono::seconds again_in);
  // histories.cpp
  void count_histories(Connection& at, long long sale, const std::string& name,
                       const PaymentTerms& terms, PaymentTotals& totals) const;
  std::int64_t make_all_due(const SaleTransaction& in, const std::string& which) const;
  std::int64_t go_on(const SaleTransaction& in) const;
  bool make_due(const std::string& sale, const std::string& table_and_what,
                const MessagePlace& place, const std::string& condition);
  bool note_message(const std::string& sale, const OrderMessage& message, const std::string& state,
                    const std::string& due_us, const std::string& note);

  SqlSessions& sessions_;
};

template <class Do>
bool SqlOrderPayments::changing(const std::string& sale, Do&& work) {
  const auto locked = [&](Connection& at) {
    SaleTransaction in{at, dialect(), locked_sale(at, dialect(), sale), sale};
    return work(in);
  };
  return sessions_.in_transaction(locked);
}

}  // namespace sluice::sale
