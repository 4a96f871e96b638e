/// How the orders of a sale stand in the store, and every way to read and write them whole; as
/// admit.lua writes them.
///
///   {NAME}:buyers     buyer -> "live units ORDER": how many orders and units he has that were not
///                     returned, and his latest order
///   {NAME}:requests   "bytes of the buyer:buyer" + request -> ORDER without its request, of each
///                     earlier order
///   {NAME}:returned   "id:seq" -> units, of each return; below 0 of each retake, 0 of one refused
///   {NAME}:orders     stream: order ORDER, buyer
///
/// ORDER is the text "state n sequence number units issued_us request": state is a letter (see
/// states[]), n counts the buyer's orders from 1, returned ones too, so that no place is used
/// twice; the id is the second of `issued_us` and the sequence. With a limit of one order a buyer
/// that is one field of one hash for each order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sale/definition.hpp"
#include "sluice/order_store.hpp"

namespace sluice::sale {

/// As which the store has an order that the database has in this state: it knows whether an order
/// stands, not whether it is paid.
OrderState in_store(OrderState state) noexcept;
/// Whether the store may have `record` where the database has `row`: an order that had ended goes
/// on to its refund without the store.
bool is_same_state(OrderState record, OrderState row) noexcept;

/// Empty: the text is none that admit.lua writes.
std::optional<SaleOrder> order_of(std::string_view text, std::string buyer);
/// The other way round. Throws Error{corrupt} for an order whose id is not of the second in which
/// it was issued: no sale gives such ids.
std::string text_of(const SaleOrder& order);

/// What `{NAME}:returned` says of a retake that was refused.
constexpr std::string_view refused_units = "0";
/// The reason of an order that a recovery has ended. It stays where the order is paid late.
inline constexpr const char* told_by_store = "told by the store: the database had lost it";

/// What the store knows of a buyer.
struct BuyerRecord {
  std::int64_t live = 0;   ///< orders that were not returned
  std::int64_t units = 0;  ///< of these
  SaleOrder latest;        ///< latest.n: how many he ever had
  friend bool operator==(const BuyerRecord&, const BuyerRecord&) = default;
};

/// A request to buy, by which the store finds its order.
struct Wish {
  BuyerId buyer;
  RequestId request;
};

/// Each function is one round trip, unless it says otherwise, and throws what the store throws.
/// REQUIRES: the Store lives longer; the Records, and what a span shows, longer than the Tasks.
class Records {
 public:
  Records(Store& store, const SaleDefinition& sale)
      : store_(store),
        name_(sale.name),
        type_(sale.number_type),
        digits_(static_cast<std::size_t>(sale.digits)),
        keys_(sale.name) {}

  struct Page {
    std::vector<BuyerRecord> buyers;  ///< each with his latest order
    std::vector<SaleOrder> earlier;   ///< orders that are not their buyer's latest
    std::vector<std::string>
        damaged;       ///< "buyers: ann", "requests: 3:annr1": no order stands there
    std::string next;  ///< where to go on; empty: the end was reached
  };
  /// About `most` orders of all that the store has; `from` is empty, or Page::next. An order that
  /// is there from the first page to the last one is in one of them; some are in two while orders
  /// are added or removed.
  Task<Page> scan(std::string from, std::size_t most);

  /// The order of each request; empty: the store knows none.
  Task<std::vector<std::optional<SaleOrder>>> find(std::span<const Wish> wishes);
  /// What is known of each buyer; empty: nothing.
  Task<std::vector<std::optional<BuyerRecord>>> find(std::span<const BuyerId> buyers);

  /// For a recovery, by whose token nobody else may write: enters orders where they belong. What
  /// stands there is left alone, an order that has ended there too; another order under the same
  /// request gives way; and where another is the n-th of its buyer, one of the database is his
  /// latest. Counts nothing but the orders and units of their buyers. At most 256.
  /// Returns how many were new or another's. Throws Error: corrupt (a number that is not of this
  /// sale's type and digits, before anything is written), server (another recovery has begun).
  enum class Source {
    store,
    database,
    retake  ///< the database, of orders that had ended and stand again
  };
  Task<std::int64_t> put(std::span<const SaleOrder> orders, std::string_view token,
                         Source source = Source::store);

  /// Why its number is none that this sale gives; empty: it may be one.
  std::string refuse_number(const SaleOrder& order) const;

  enum class Returned {
    now,       ///< the sale has these units again
    before,    ///< it had got them already
    unknown,   ///< the store has no such order: nothing was returned
    archived,  ///< the sale is over, and its orders gone
    shut       ///< nothing was returned: the sale has to be recovered first
  };
  /// Gives the units of a return back to the sale, once, however often it is asked. An order that
  /// ended by it gets its state, and does not count against its buyer's limits any more.
  Task<Returned> give_back(OrderReturn what);

  enum class Retaken {
    taken,    ///< now or before: the order has its units again
    refused,  ///< none are left, or the buyer has bought otherwise, or the sale is over
    unknown,  ///< the store has no such order
    shut      ///< the sale has to be recovered first
  };
  /// Takes the units of an order that had ended once more, where they are left and its buyer may
  /// have them.
  Task<Retaken> take_again(OrderReturn what);

  /// Removes an order that stands, as if nobody had been admitted for it. Looks at every order
  /// where its buyer has several. False: the store has no such order. Throws Error{server} while
  /// nobody may change the sale.
  Task<bool> take_out(SaleOrder order);

  /// Deletes about `most` orders, for an archive; call it until it returns false. Resumes by itself
  /// after a crash.
  Task<bool> remove_some(std::size_t most);

 private:
  Task<SaleOrder> latest_but(SaleOrder order);

  Store& store_;
  const std::string name_;
  const std::string type_;
  const std::size_t digits_;
  const SaleKeys keys_;
  std::size_t removing_ = 0;  // which hash
  std::string remove_from_ = "0";
};

}  // namespace sluice::sale
