/// Columns of the database whose values follow from nothing else, in the store or there: an audit
/// says so, and compares all others.
#pragma once

#include <string_view>

namespace sluice::sale {

struct UnknownColumn {
  std::string_view table;
  std::string_view name;
  std::string_view rows;  ///< a condition; empty: in all
  std::string_view what;
  bool is_of_money = true;  ///< of sales that are paid for alone
};

inline constexpr UnknownColumn unknown_columns[] = {
    {"sale_orders", "reason", "state NOT IN ('awaiting', 'paid')",
     "the words of a reason for which an order ended", false},
    {"sale_orders", "pay_by", "", "a deadline, within a day of the time that its order came in"},
    {"sale_returns", "cause", "", "the key of a cancellation", false},
    {"sale_returns", "done", "done = 1",
     "whether the database was told of units that the store has", false},
    {"sale_changes", "delta", "state = 'refused'",
     "how many units a change asked for that was refused", false},
    {"sale_stock", "messages_off", "", "whether the receiver of messages has had enough"},
    {"sale_stock", "store_place", "", "where the store was when it began", false},
    {"sale_stock", "store_epoch", "", "with which recovery it began", false},
    {"sale_stock", "store_since_us", "", "since when the sale is sold in it", false},
    {"sale_stock", "epoch_token", "", "the word of the last recovery", false},
    {"sale_stock", "commits", "", "how often the sale was changed", false},
    {"sale_schema", "version", "", "the version of the tables", false},
    {"sale_payments", "provider", "", "who told of a payment"},
    {"sale_payments", "event", "", "under which id"},
    {"sale_payments", "received_us", "", "when a payment came"},
    {"sale_payments", "state", "state IN ('flagged', 'refunding', 'refunded', 'settled')",
     "what a person has made of one that was flagged"},
    {"sale_payments", "sale_name",
     "state IN ('waiting', 'flagged', 'refunding', 'refunded', 'settled')",
     "of what sale one is that waits, or was flagged"},
    {"sale_payments", "number", "state = 'waiting' OR order_id = 0",
     "of what order one is that waits"},
    {"sale_payments", "amount",
     "state IN ('waiting', 'flagged', 'refunding', 'refunded', 'settled')",
     "of what sum one is that waits, or was flagged"},
    {"sale_payments", "currency",
     "state IN ('waiting', 'flagged', 'refunding', 'refunded', 'settled')", "and in what currency"},
    {"sale_payments", "note", "state IN ('flagged', 'refunding', 'refunded', 'settled')",
     "the words that say why one is flagged, and who settled it"},
    {"sale_payments", "attempts", "", "how often it was tried to send one back"},
    {"sale_payments", "due_us", "", "when that is tried again, or was done"},
    {"sale_payments", "failure", "", "why that failed"},
    {"sale_refunds", "attempts", "", "how often a refund was tried"},
    {"sale_refunds", "due_us", "", "when it is tried again, or was done"},
    {"sale_refunds", "note", "state IN ('asked', 'settled')",
     "why it failed, or who gave its money otherwise"},
    {"sale_messages", "data", "order_id = 0",
     "how many units were left when the sale opened again"},
    {"sale_messages", "at_us", "", "when a message was left"},
    {"sale_messages", "due_us", "", "when it is sent again"},
    {"sale_messages", "attempts", "", "how often it was sent"},
    {"sale_messages", "note", "", "why it was not delivered"},
    {"sale_messages", "mark", "", "the random word of its id"},
    {"sale_messages", "state", "", "whether it was delivered"},
};

}  // namespace sluice::sale
