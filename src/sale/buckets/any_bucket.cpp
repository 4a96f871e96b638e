#include "sale/buckets/any_bucket.hpp"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "sale/buckets/bucket_name.hpp"
#include "sale/definition.hpp"

namespace sluice::sale {

namespace {

/// The indexes that there may be a bucket of. One round trip; all of them where a server does not
/// answer: then the first one that is there may be asked yet.
Task<std::vector<std::int64_t>> candidates(Store& store, std::string name) {
  std::vector<std::int64_t> all(most_buckets);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  try {
    Batch batch;
    for (const auto i : all)
      batch.add({"HEXISTS", SaleKeys{bucket_name(name, i)}.sale, bucket_field});
    const std::vector<Value> replies = co_await store.run(std::move(batch), repeatable);
    std::erase_if(all, [&](std::int64_t i) {
      const auto& reply = replies.at(static_cast<std::size_t>(i));
      return !reply.is_error() && reply.as_integer() == 0;
    });
  } catch (const Error&) {
    co_return all;
  }
  co_return all;
}

}  // namespace

Task<std::optional<SaleDefinition>> any_bucket(Store& store, std::string name) {
  auto looked = candidates(store, name);
  const std::vector<std::int64_t> indexes = co_await looked;
  for (const auto i : indexes) {
    auto asked = read_definition(store, bucket_name(name, i));
    std::optional<SaleDefinition> found = co_await asked;
    if (found && found->bucket) co_return found;
  }
  co_return std::nullopt;
}

std::optional<SaleDefinition> any_bucket(OrderStore& orders, const std::string& name) {
  for (std::int64_t i = 0; i < most_buckets; ++i) {
    const auto bucket = bucket_name(name, i);
    const auto kept = orders.definition(bucket);
    if (kept.empty()) continue;
    if (auto found = definition_of(bucket, kept); found.bucket) return found;
  }
  return std::nullopt;
}

void refuse_beside(const SaleDefinition& bucket) {
  throw Error{Errc::bad_argument,
              fmt::format("sale '{}' is there, with {} buckets: say so, or use another name",
                          whole_name(bucket.name), bucket.bucket->count)};
}

}  // namespace sluice::sale
