/// Where a sale lies in the store, and its definition: what is allowed in it, and how it stands in
/// the sale's hash.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/sale.hpp"
#include "store/key_name.hpp"

namespace sluice::sale {

/// Of the layout in the store (records.hpp), in the field `format` of the sale's hash. A sale of
/// another format is refused. The field `stock` stands in sales of format 1 alone, so that a
/// program that knows no formats finds no sale here.
inline constexpr std::string_view format = "2";

/// Each has a letter in its order numbers.
inline constexpr std::int64_t most_buckets = 26;

/// In a bucket's hash: index, buckets and stock of the whole sale.
inline constexpr std::string_view bucket_field = "bucket";
/// The word of the moves between buckets of a new sale: see buckets/buckets.lua.
inline constexpr std::string_view first_moves = "0";
std::optional<BucketPlace> place_of(std::string_view text);

/// The consumer group of the orders stream.
inline constexpr std::string_view group = "workers";

/// In the field `recovering`: the store lost the sale, and it was created again.
inline constexpr std::string_view shut_as_lost = "lost";
/// There too: its database has lost what it had committed.
inline constexpr std::string_view shut_as_rolled_back = "rolled back";
/// There too: the sale is sold in another store by now. recover() opens it on demand alone.
inline constexpr std::string_view shut_as_fenced = "fenced";
/// A field of an archived sale, which has no gate: its database came back from before.
inline constexpr std::string_view rolled_back_field = "rolled_back";

/// For scripts that do the same when they run twice, as each request carries its id.
inline constexpr CallOptions repeatable{.repeatable = true};

/// How many orders are read at a time.
inline constexpr std::size_t page_size = 1000;

/// Of all sales of a store: how many were created, their names in that order (a sorted set), and
/// the sale that gives numbers of each type (a hash).
inline constexpr std::string_view lanes_key = "sluice:sales";
inline constexpr std::string_view names_key = "sluice:sales:names";
inline constexpr std::string_view types_key = "sluice:sales:types";

struct SaleKeys {
  explicit SaleKeys(std::string_view name)
      : sale(key_with_suffix(name, "sale")),
        buyers(key_with_suffix(name, "buyers")),
        requests(key_with_suffix(name, "requests")),
        returned(key_with_suffix(name, "returned")),
        settled(key_with_suffix(name, "settled")),
        orders(key_with_suffix(name, "orders")),
        dead(key_with_suffix(name, "dead")),
        recovery(key_with_suffix(name, "recovery")) {}

  std::string sale;
  std::string buyers;
  std::string requests;
  std::string returned;
  std::string settled;
  std::string orders;
  std::string dead;
  std::string recovery;
};

/// Throws Error{bad_argument} that names the field, its value and what it may be.
void check_name(std::string_view name);
void check(const SaleDefinition& definition);
/// How many order numbers a day has.
std::int64_t numbers_of(const SaleDefinition& definition) noexcept;
/// The same for another stock: each unit may be an order of one day.
void check_numbers(const SaleDefinition& definition, std::int64_t stock);

/// The fields of the hash that hold the definition, and their values.
std::vector<std::pair<std::string, std::string>> fields_of(const SaleDefinition& definition);

/// The other way round; of other fields it takes no notice. Throws Error{corrupt} where a field is
/// missing, or not what fields_of() writes.
SaleDefinition definition_of(std::string name,
                             const std::vector<std::pair<std::string, std::string>>& all);

/// Reads the definition from the store. Empty: there is no such sale. Throws Error: config_mismatch
/// (a sale of another format; says what to do), corrupt (a field that fields_of() does not write).
Task<std::optional<SaleDefinition>> read_definition(Store& store, std::string name);

/// Enters a sale into the list of all. Returns its lane in the ids: 1 to 4095, the next one for
/// each new sale of the store. `anew`: it is in the list, and another has its lane.
Task<std::string> take_lane(Store& store, std::string name, bool anew = false);

/// Enters a sale that is there into the lists of all again: they may lie on another server, which
/// came back without them. Blocks the thread.
void list_again(Store& store, const std::string& name, const std::string& type,
                const std::string& lane);
/// The same, as its hash says. Does nothing where it is not there.
void list_again(Store& store, const std::string& name);

/// Which store a reply of INFO is of, as a sale remembers it. Empty: it does not say so, or may not
/// be asked.
std::string store_id(const Value& info);

/// "stock 100 there, 200 here; zone ..." ; empty when they are the same.
std::string difference(const SaleDefinition& there, const SaleDefinition& here);

}  // namespace sluice::sale
