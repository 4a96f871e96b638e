/// What operators do with a filter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/integer.hpp"
#include "bloom/filter.hpp"
#include "bloom/shared/shared.lua.hpp"
#include "bloom/shared/shared_filter.hpp"
#include "store/reply_error.hpp"

namespace sluice::bloom {
namespace {

Words words(const std::vector<std::string_view>& views) { return {views.data(), views.size()}; }

}  // namespace

Task<Value> SharedFilter::manage(std::function<Call(const Definition&)> make) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition known = co_await read();
    if (!known.exists()) co_return Value{};
    const Call call = make(known);
    // Not sent again: a late copy would do to what the filter is then what was meant for this one.
    const Value reply = co_await call.run(store_, false);
    if (!reply.is_aggregate()) co_return reply;
    remember(Definition::of(reply, names_.config));  // or a link is missing
  }
  throw changes_always(names_);
}

Task<SharedBloomInfo> SharedFilter::info() {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition known = co_await read();
    if (!known.exists()) throw closed();
    Batch batch;
    batch.add({"HMGET", names_.config, "size", "hashIterations", "sluice:links", "sluice:id",
               "sluice:next", "expectedInsertions", "falseProbability"});
    batch.add({"PTTL", names_.config});
    const std::string next_config = FilterNames{next_name(names_.bits)}.config;
    batch.add({"EXISTS", next_config});
    for (const auto& link : names_.links(known.links.size())) {
      batch.add({"BITCOUNT", link});
      batch.add({"STRLEN", link});
    }
    const std::vector<Batch::Item> items = batch.items();
    const std::vector<Value> replies = co_await store_.run(std::move(batch));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (!replies[i].is_error()) continue;
      const std::vector<std::string_view> command{items[i].words.begin(), items[i].words.end()};
      throw error_of_command(replies[i].as_text(), words(command));
    }
    const auto& fields = replies.at(0).as_items();
    if (Definition::of(replies[0], names_.config) != known) continue;

    SharedBloomInfo info;
    const auto number_of = [](const Value& field) {
      return field.is_null() ? "" : field.as_text();
    };
    info.expected = leading_number<std::uint64_t>(number_of(fields.at(5)));
    info.error_rate = parse_decimal(number_of(fields.at(6))).value_or(0);
    const std::int64_t left = replies.at(1).as_integer();
    if (left >= 0) info.left = std::chrono::milliseconds{left};
    info.rebuilding = !known.next.empty() && replies.at(2).as_integer() == 1;
    info.scalable = known.grows();
    double right = 1;  // that no link is wrong
    for (std::size_t i = 0; i < known.links.size(); ++i) {
      SharedBloomInfo::Link link;
      link.bits = known.links[i].bits;
      link.hashes = known.links[i].hashes;
      link.capacity = known.grows() ? known.links[i].capacity : info.expected;
      link.bits_set = static_cast<std::uint64_t>(replies.at(3 + 2 * i).as_integer());
      link.bytes = static_cast<std::uint64_t>(replies.at(4 + 2 * i).as_integer());
      if (link.bytes == 0) co_await need_links(known);
      const auto bits = static_cast<double>(link.bits);
      const auto set = static_cast<double>(link.bits_set);
      info.keys += estimated_keys(link.bits, std::min(link.bits_set, link.bits), link.hashes);
      right *= 1 - std::pow(std::min(set / bits, 1.0), link.hashes);
      info.links.push_back(link);
    }
    info.error_rate_now = 1 - right;
    co_return info;
  }
  throw changes_always(names_);
}

Task<void> SharedFilter::merge(std::vector<std::string> others) {
  const auto self = shared_from_this();
  for (const std::string& name : others) {
    if (name == names_.bits) continue;
    const auto other = std::make_shared<SharedFilter>(store_, name, options_);
    Definition theirs;
    const auto call_for_merge = [this, &theirs, &other](const Definition& mine) {
      const bool is_alike =
          theirs.links.size() <= mine.links.size() && theirs.grows() == mine.grows() &&
          std::ranges::equal(theirs.links, std::span{mine.links}.first(theirs.links.size()));
      if (!is_alike)
        throw Error{Errc::config_mismatch,
                    fmt::format("Bloom filter {} ({} bits, {} hashes, links {}) and {} ({} bits, "
                                "{} hashes, links {}) cannot be merged: only filters of the same "
                                "size and hashes can, and a chain takes none that is longer",
                                quoted(names_.bits), mine.size, mine.hashes, mine.links.size(),
                                quoted(other->names_.bits), theirs.size, theirs.hashes,
                                theirs.links.size())};
      Call call{scripts::bloom_shared_merge};
      call.key(names_.config).key(other->names_.config);
      call.key(FilterNames{next_name(names_.bits)}.config);
      for (std::size_t i = 0; i < theirs.links.size(); ++i)
        call.key(names_.link(i)).key(other->names_.link(i));
      const bool counts = mine.grows() && theirs.links.size() == mine.links.size();
      call.known(mine).arg(theirs.size).arg(theirs.hashes).arg(theirs.chain);
      call.arg(counts ? "1" : "0").arg(names_.channel);
      return call;
    };
    for (int change = 0;; ++change) {
      if (change == most_changes) throw changes_always(other->names_);
      theirs = co_await other->read();
      if (!theirs.exists()) throw other->closed();
      const Value reply = co_await manage(call_for_merge);
      if (reply.is_null()) throw closed();
      if (reply.as_integer() == 1) break;
      if (reply.as_integer() == 0)
        throw Error{Errc::in_use, fmt::format("Bloom filter {} is rebuilt now: merge when that has "
                                              "ended, or add the keys to both",
                                              quoted(names_.bits))};
    }
  }
}

Task<bool> SharedFilter::remove() {
  const auto self = shared_from_this();
  const FilterNames next{next_name(names_.bits)};
  const Value reply = co_await manage([this, &next](const Definition& known) {
    Call call{scripts::bloom_shared_remove};
    call.key(names_.config).key(next.config).key(next.bits);
    for (auto& link : names_.links(known.links.size())) call.key(std::move(link));
    call.known(known).arg(names_.channel);
    return call;
  });
  remember({});
  co_return !reply.is_null();
}

Task<bool> SharedFilter::set_ttl(std::chrono::milliseconds ttl) {
  const auto self = shared_from_this();
  const Value reply = co_await manage([this, ttl](const Definition& known) {
    Call call{scripts::bloom_shared_expire};
    call.key(names_.config);
    for (auto& link : names_.links(known.links.size())) call.key(std::move(link));
    call.known(known).arg(static_cast<std::uint64_t>(ttl.count()));
    return call;
  });
  co_return !reply.is_null();
}

Task<bool> SharedFilter::rename(std::string to) {
  const auto self = shared_from_this();
  const FilterNames other{checked_name(std::move(to))};
  if (other.bits == names_.bits)
    throw Error{Errc::bad_argument,
                fmt::format("Bloom filter {} has that name already", quoted(names_.bits))};
  const Value reply = co_await manage([this, &other](const Definition& known) {
    Call call{scripts::bloom_shared_rename};
    call.key(names_.config).key(other.config).key(FilterNames{next_name(names_.bits)}.config);
    for (std::size_t i = 0; i < known.links.size(); ++i)
      call.key(names_.link(i)).key(other.link(i));
    call.known(known).arg(names_.channel).arg(other.channel);
    return call;
  });
  remember({});
  if (!reply.is_null() && reply.as_integer() == 0)
    throw Error{Errc::in_use,
                fmt::format("Bloom filter {} cannot be called {}: its bits, {} or a "
                            "link are there; remove them first",
                            quoted(names_.bits), quoted(other.bits), quoted(other.config))};
  if (!reply.is_null() && reply.as_integer() < 0)
    throw Error{Errc::in_use, fmt::format("Bloom filter {} is rebuilt now: rename it when that has "
                                          "ended",
                                          quoted(names_.bits))};
  co_return !reply.is_null();
}

}  // namespace sluice::bloom
