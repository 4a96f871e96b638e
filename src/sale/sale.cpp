#include "sluice/sale.hpp"

#include <fmt/format.h>

#include "sale/admission.hpp"
#include "sale/definition.hpp"
#include "sale/order_queue.hpp"
#include "sale/orders.lua.hpp"
#include "sale/sale.lua.hpp"

namespace sluice {
namespace {

constexpr std::size_t longest_id = 128;

void check_id(std::string_view what, const std::string& id, const std::string& sale) {
  if (id.empty() || id.size() > longest_id)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': the {} has {} bytes, it must have 1 to {}", sale, what,
                            id.size(), longest_id)};
}

}  // namespace

class Sale::Impl {
 public:
  Impl(Store& store, SaleDefinition definition)
      : store_(store),
        definition_(std::move(definition)),
        keys_(definition_.name),
        admissions_(store, definition_) {}

  const SaleDefinition& definition() const noexcept { return definition_; }

  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units) {
    check_id("buyer", buyer.value, definition_.name);
    check_id("request id", request.value, definition_.name);
    const auto most = definition_.largest_order > 0 ? definition_.largest_order
                                                    : std::max<std::int64_t>(definition_.stock, 1);
    if (units < 1 || units > most)
      throw Error{Errc::bad_argument,
                  fmt::format("sale '{}': an order of {} units, it must have 1 to {}",
                              definition_.name, units, most)};
    return admissions_.decide(std::move(buyer), std::move(request), units);
  }

  Task<SaleStatus> status();

  Task<void> close() {
    auto asked = store_.run(scripts::sale_close, {keys_.sale}, {}, sale::repeatable);
    if (const Value closed = co_await asked; closed.as_integer() == 0)
      throw Error{Errc::server, fmt::format("sale '{}' is not in {} any more", definition_.name,
                                            store_.describe())};
  }

  Task<std::vector<DeadLetter>> dead_letters(std::string after, std::size_t most) {
    const auto from = after.empty() ? std::string{"-"} : "(" + after;
    const auto count = fmt::to_string(most);
    auto asked = store_.run({"XRANGE", keys_.dead, from, "+", "COUNT", count});
    const Value reply = co_await asked;
    std::vector<DeadLetter> letters;
    for (const auto& entry : reply.as_items()) letters.push_back(sale::dead_letter_of(entry));
    co_return letters;
  }

  Task<bool> revive(std::string id) {
    auto asked = store_.run(scripts::sale_revive, {keys_.orders, keys_.dead}, {id});
    const Value revived = co_await asked;
    co_return revived.as_integer() == 1;
  }

 private:
  Store& store_;
  const SaleDefinition definition_;
  const sale::SaleKeys keys_;
  sale::Admissions admissions_;
};

namespace {

SaleState state_of(const SaleDefinition& sale, const SaleStatus& status, bool closed,
                   WallTime now) {
  if (closed || (sale.closes_at && now >= *sale.closes_at)) return SaleState::closed;
  if (sale.opens_at && now < *sale.opens_at) return SaleState::not_started;
  return status.left() <= 0 ? SaleState::sold_out : SaleState::open;
}

/// The items of a batch that must all have succeeded.
const Value& checked(const Value& reply) {
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

}  // namespace

Task<SaleStatus> Sale::Impl::status() {
  Batch batch;
  batch.add({"TIME"}).add({"HMGET", keys_.sale, "stock", "sold", "orders", "last", "closed"});
  batch.add({"XLEN", keys_.orders}).add({"XLEN", keys_.dead});
  const std::vector<Value> replies = co_await store_.run(std::move(batch));

  SaleStatus status;
  status.waiting = checked(replies.at(2)).as_integer();
  status.dead = checked(replies.at(3)).as_integer();
  const auto& fields = checked(replies.at(1)).as_items();
  if (fields.at(0).is_null()) co_return status;
  status.stock = fields.at(0).as_integer();
  status.sold = fields.at(1).as_integer();
  status.orders = fields.at(2).as_integer();
  const auto& time = checked(replies.at(0)).as_items();
  WallTime now{std::chrono::seconds{time.at(0).as_integer()} +
               std::chrono::microseconds{time.at(1).as_integer()}};
  if (!fields.at(3).is_null())
    now = std::max(now, WallTime{std::chrono::microseconds{fields.at(3).as_integer()}});
  status.state = state_of(definition_, status, !fields.at(4).is_null(), now);
  co_return status;
}

std::string_view to_string(SaleState state) noexcept {
  static constexpr std::string_view names[] = {"not loaded", "not started", "open", "sold out",
                                               "closed"};
  return names[static_cast<std::size_t>(state)];
}

namespace {

/// The lane of a sale in the ids: 1 to 4095, the next one for each new sale of the store. Lane 0 is
/// that of sales made before there were lanes.
Task<std::string> next_lane(Store& store) {
  constexpr std::int64_t lanes = 4095;
  auto asked = store.run({"INCR", "sluice:sales"}, {.repeatable = true});
  const Value count = co_await asked;
  co_return fmt::to_string((count.as_integer() - 1) % lanes + 1);
}

}  // namespace

Task<Sale> Sale::create(Store& store, SaleDefinition definition) {
  sale::check(definition);
  auto impl = std::make_unique<Impl>(
      store, definition);  // an unknown zone is told before anything is written
  const sale::SaleKeys keys{definition.name};
  const auto values = sale::values_of(definition);
  std::vector<std::string_view> args{sale::group};
  for (std::size_t i = 0; i < values.size(); ++i) {
    args.push_back(sale::definition_fields()[i]);
    args.push_back(values[i]);
  }
  auto asked_for = store.run({"EXISTS", keys.sale});
  const Value exists = co_await asked_for;
  std::string lane;
  if (exists.as_integer() == 0) {
    lane = co_await next_lane(store);
    args.insert(args.end(), {"lane", lane});
  }
  const std::vector<std::string_view> names{keys.sale, keys.orders};
  const Value stored =
      co_await store.run(scripts::sale_create, Words{names}, Words{args}, sale::repeatable);
  if (!stored.as_items().empty()) {
    const auto there = sale::definition_of(definition.name, stored.as_items());
    if (there != definition)
      throw Error{
          Errc::config_mismatch,
          fmt::format(
              "sale '{}' is defined otherwise in {}: {}; use the same definition, or another name",
              definition.name, store.describe(), sale::difference(there, definition))};
  }
  co_return Sale{std::move(impl)};
}

Task<std::optional<Sale>> Sale::load(Store& store, std::string name) {
  sale::check_name(name);
  const sale::SaleKeys keys{name};
  std::vector<std::string_view> words{"HMGET", keys.sale};
  words.insert(words.end(), sale::definition_fields().begin(), sale::definition_fields().end());
  const Value reply = co_await store.run(Words{words});
  const auto& values = reply.as_items();
  if (values.at(0).is_null()) co_return std::nullopt;
  co_return Sale{std::make_unique<Impl>(store, sale::definition_of(std::move(name), values))};
}

Sale::Sale(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Sale::~Sale() = default;
Sale::Sale(Sale&&) noexcept = default;
Sale& Sale::operator=(Sale&&) noexcept = default;

const SaleDefinition& Sale::definition() const noexcept { return impl_->definition(); }
Task<Admission> Sale::buy(BuyerId buyer, RequestId request, std::int64_t units) {
  return impl_->buy(std::move(buyer), std::move(request), units);
}
Task<SaleStatus> Sale::status() { return impl_->status(); }
Task<void> Sale::close() { return impl_->close(); }
Task<std::vector<DeadLetter>> Sale::dead_letters(std::string after, std::size_t most) {
  return impl_->dead_letters(std::move(after), most);
}
Task<bool> Sale::revive(std::string dead_letter_id) {
  return impl_->revive(std::move(dead_letter_id));
}

}  // namespace sluice
