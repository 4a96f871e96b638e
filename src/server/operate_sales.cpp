/// What operators do with a sale and its dead letters.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/integer.hpp"
#include "server/journal.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/problems.hpp"
#include "server/sales_text.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_object = R"({"type":"object"})";

Json order_json(std::string_view sale, const SaleOrder& order, bool is_recorded) {
  return json_of(sale, {.order = order, .is_recorded = is_recorded, .to_shop = ShopsView{}});
}

Json letter_json(std::string_view sale, const std::string& id, const DeadLetter& letter) {
  auto fields = Json::object();
  std::set<std::string_view> names;  // who wrote an entry by hand may have written one twice
  for (const auto& [name, value] : letter.fields)
    if (names.insert(name).second) fields.add(name, cut(value));
  return Json::object({{"id", id},
                       {"entry", letter.entry},
                       {"reason", cut(letter.reason)},
                       {"order", letter.order ? order_json(sale, *letter.order, false) : Json{}},
                       {"fields", fields}});
}

http::Response list_letters(Asked& asked, const Orders&) {
  auto& sale = asked.offer->sale();
  const auto read = [&](Sale& part, const std::string& after,
                        std::size_t most) -> Expected<Listed, http::Response> {
    if (!after.empty() && !is_stream_id(after))
      return Unexpected{
          http::problem(problems::bad_parameter, "'after' is the id of a dead letter")};
    const auto letters = part.dead_letters(after, most).get();
    Listed listed;
    for (const auto& letter : letters)
      listed.items.push_back(
          letter_json(asked.sale(), text_outside(sale, part, letter.id), letter));
    if (letters.size() >= most) listed.next = letters.back().id;
    return listed;
  };
  return page_over_parts(asked, "letters", read);
}

/// Which letter the path names; empty: there can be none of that id.
struct Letter {
  Sale& part;
  std::string id;
};
std::optional<Letter> letter_of(Asked& asked) {
  auto& sale = asked.offer->sale();
  const auto place = sale.place_of(asked.request.parameter("id"));
  if (!place || !is_stream_id(place->within)) return std::nullopt;
  return Letter{*sale.parts()[place->part], place->within};
}

/// The id before this one.
std::string place_before(const std::string& id) {
  const auto dash = id.find('-');
  const auto time = leading_number<std::uint64_t>(id);
  const auto count = leading_number<std::uint64_t>(std::string_view{id}.substr(dash + 1));
  return count > 0 ? fmt::format("{}-{}", time, count - 1) : fmt::format("{}-{}", time - 1, ~0ULL);
}

http::Response revive_letter(Asked& asked, const Orders&) {
  const auto letter = letter_of(asked);
  if (letter)
    for (const auto& its : letter->part.dead_letters(place_before(letter->id), 1).get())
      if (its.id == letter->id && its.order) asked.found.order = its.order->number;
  if (!letter || !letter->part.revive(letter->id).get()) return http::problem(problems::no_letter);
  return {.status = 204};
}

http::Response settle_letter(Asked& asked, const Orders& orders) {
  const auto letter = letter_of(asked);
  if (!letter) return http::problem(problems::no_letter);
  const auto ended = letter->part.give_back(orders(), letter->id, asked.text("reason"));
  if (!ended) return http::problem(problems::no_letter);
  if (ended->order) asked.found.order = ended->order->number;
  const auto order = ended->order ? order_json(asked.sale(), *ended->order, true) : Json{};
  return http::json(200, Json::object({{"order", order}}));
}

/// First in the store, which sells nothing more from then on, whatever the database does; then so
/// that no recovery opens the sale again.
http::Response close_sale(Asked& asked, const Orders& orders) {
  auto& sale = asked.offer->sale();
  sale.close().get();
  try {
    sale.close(orders());
  } catch (const Error& failure) {
    throw ToldError{failure,
                    "the sale is closed in the store, and sells nothing more; close it again, so "
                    "that no recovery opens it: "};
  }
  return {.status = 204};
}

http::Response change_stock(Asked& asked, const Orders& orders) {
  auto& sale = asked.offer->sale();
  if (sale.change_stock(orders(), asked.number("stock"))) return {.status = 204};
  return http::problem(problems::more_sold, {}, {{"sold", sale.status().get().sold}});
}

Json findings_of(const SaleAudit& audit) {
  auto findings = Json::array();
  for (const auto& check : audit.checks)
    if (!check.ok)
      findings.add(fmt::format("{}: {} instead of {}: {}", check.name, check.figure, check.expected,
                               cut(check.detail)));
  for (const auto& difference : audit.differences) findings.add(to_string(difference));
  return findings;
}

http::Response audit_sale(Store& store, Asked& asked, const Orders& orders) {
  const auto began = system_clock().steady();
  const auto found = asked.offer->sale().audit(store, orders());
  const auto took = system_clock().steady() - began;
  return http::json(
      200,
      Json::object({{"sound", found.ok()},
                    {"findings", findings_of(found)},
                    {"orders", found.admitted},
                    {"took_ms", std::chrono::floor<std::chrono::milliseconds>(took).count()}}));
}

}  // namespace

std::vector<OperateCall> sale_calls(Store& store) {
  using namespace problems;
  using Kind = BodyMember::Kind;
  const std::string of_sale = "/v1/operate/sales/{sale}";
  return {{.method = "GET",
           .path = of_sale + "/dead-letters",
           .operation = "console_dead_letters",
           .summary = "Orders that no worker could bring into the database",
           .has_pages = true,
           .answer = {200, "Dead letters, the oldest first", any_object},
           .asks_database = false,
           .serve = list_letters},
          {.method = "POST",
           .path = of_sale + "/dead-letters/{id}/revive",
           .operation = "revive_dead_letter",
           .summary = "Sends a dead letter to the workers again",
           .problems = {&no_letter},
           .serve = revive_letter},
          {.method = "POST",
           .path = of_sale + "/dead-letters/{id}/settle",
           .operation = "settle_dead_letter",
           .summary = "Cancels the order of a dead letter; its units return to the sale",
           .body = {{"reason", Kind::text, false}},
           .is_final = true,
           .answer = {200, "The order, if it makes one", any_object},
           .problems = {&no_letter},
           .serve = settle_letter},
          {.method = "POST",
           .path = of_sale + "/close",
           .operation = "close_sale",
           .summary = "Sells nothing more, for ever",
           .is_final = true,
           .serve = close_sale},
          {.method = "POST",
           .path = of_sale + "/stock",
           .operation = "change_stock",
           .summary = "Changes what the sale sells in all",
           .body = {{"stock"}},
           .is_final = true,
           .problems = {&more_sold},
           .serve = change_stock},
          {.method = "POST",
           .path = of_sale + "/audit",
           .operation = "audit_sale",
           .summary = "Proves the sale from what lies in store and database",
           .answer = {200, "What was found", any_object},
           .subject = "audit",
           .within = std::chrono::minutes{10},
           .serve = [&store](Asked& asked, const Orders& orders) {
             return audit_sale(store, asked, orders);
           }}};
}

}  // namespace sluice::server
