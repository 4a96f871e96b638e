/// XPENDING, XCLAIM, XAUTOCLAIM: entries that were delivered and not acknowledged.
#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/families.hpp"
#include "engine/commands/stream_shared.hpp"

namespace sluice::engine {
namespace {

std::int64_t idle_ms(const Context& context, const StreamGroup::Pending& pending) {
  return std::max<std::int64_t>(0, context.now_ms() - pending.delivered_ms);
}

// --- XPENDING ---

void pending_summary(const StreamGroup& group, Reply& reply) {
  reply.array(4);
  reply.integer(static_cast<std::int64_t>(group.pending().size()));
  if (group.pending().empty()) {
    reply.null();
    reply.null();
    return reply.null_array();
  }
  reply_id(reply, group.pending().begin()->first);
  reply_id(reply, group.pending().rbegin()->first);
  const auto busy = [](const auto& named) { return !named.second.pending.empty(); };
  reply.array(static_cast<std::size_t>(std::ranges::count_if(group.consumers(), busy)));
  for (const auto& named : group.consumers()) {
    if (!busy(named)) continue;
    reply.array(2);
    reply.bulk(named.first);
    reply.bulk(IntegerText{static_cast<std::int64_t>(named.second.pending.size())});
  }
}

struct PendingQuery {
  std::int64_t min_idle = 0;
  StreamId first;
  StreamId last;
  std::int64_t count = 0;
  std::string_view consumer;
  bool of_consumer = false;
};

PendingQuery read_pending_query(Words words) {
  PendingQuery query;
  std::size_t at = 3;
  if (words.size() < 6 || words.size() > 9) refuse(syntax_error);
  if (is_word(words[3], "idle")) {
    query.min_idle = read_integer(words[4]);
    if (words.size() < 8) refuse(syntax_error);
    at = 5;
  }
  query.count = std::max<std::int64_t>(read_integer(words[at + 2]), 0);
  query.of_consumer = words.size() > at + 3;  // what is behind it is ignored, as Redis does
  if (query.of_consumer) query.consumer = words[at + 3];
  query.first = read_range_start(words[at]);
  query.last = read_range_end(words[at + 1]);
  return query;
}

using Found = std::vector<std::pair<StreamId, const StreamGroup::Pending*>>;

template <class Map, class Get>
Found select(const Context& context, const Map& map, const PendingQuery& query, Get get) {
  Found found;
  for (auto at = map.lower_bound(query.first); at != map.end() && at->first <= query.last; ++at) {
    if (found.size() >= static_cast<std::size_t>(query.count)) break;
    const StreamGroup::Pending& pending = get(at->second);
    if (query.min_idle == 0 || idle_ms(context, pending) >= query.min_idle)
      found.emplace_back(at->first, &pending);
  }
  return found;
}

void xpending(Context& context, Words words, Reply& reply) {
  const auto query = words.size() > 3 ? read_pending_query(words) : PendingQuery{};
  auto& group = find_group(context, words[1], words[2]).group;
  if (words.size() == 3) return pending_summary(group, reply);

  Found found;
  if (!query.of_consumer) {
    found = select(
        context, group.pending(), query,
        [](const auto& pending) -> const auto& { return pending; });
  } else if (const auto* consumer = group.find_consumer(query.consumer)) {
    found = select(
        context, consumer->pending, query,
        [](const auto* pending) -> const auto& { return *pending; });
  }
  reply.array(found.size());
  for (const auto& [id, pending] : found) {
    reply.array(4);
    reply_id(reply, id);
    reply.bulk(pending->consumer->name);
    reply.integer(idle_ms(context, *pending));
    reply.count(pending->deliveries);
  }
}

// --- XCLAIM and XAUTOCLAIM ---

/// Logs the entries that went to the consumer: one XCLAIM for those in a row that were delivered
/// alike.
class ClaimLog {
 public:
  ClaimLog(Context& context, Words words, const StreamGroup& group)
      : context_(context), words_(words), group_(group) {}

  void claimed(StreamId id, const StreamGroup::Pending& pending) {
    if (!ids_.empty() &&
        (pending.deliveries != deliveries_ || pending.delivered_ms != delivered_ms_))
      flush();
    deliveries_ = pending.deliveries;
    delivered_ms_ = pending.delivered_ms;
    ids_.emplace_back(id);
  }

  /// The entry is deleted in the stream, so it is not pending any more.
  void dropped(StreamId id) {
    context_.log_instead({"XACK", words_[1], words_[2], StreamIdText{id}.view()});
  }

  void flush() {
    if (ids_.empty()) return;
    log_claim(context_, {words_[1], words_[2], words_[3], delivered_ms_, deliveries_}, ids_,
              group_.last_id);
    ids_.clear();
  }

 private:
  Context& context_;
  Words words_;
  const StreamGroup& group_;
  std::vector<StreamIdText> ids_;
  std::uint64_t deliveries_ = 0;
  std::int64_t delivered_ms_ = 0;
};

struct Claim {
  std::int64_t min_idle = 0;
  std::vector<StreamId> ids;
  std::int64_t delivered_ms = -1;
  std::int64_t deliveries = -1;
  bool force = false;
  bool just_id = false;
  StreamId last_id;
};

void read_claim_option(Context& context, Words words, std::size_t& at, Claim& claim) {
  const auto word = words[at];
  const bool more = at + 1 < words.size();
  if (is_word(word, "force")) {
    claim.force = true;
  } else if (is_word(word, "justid")) {
    claim.just_id = true;
  } else if (is_word(word, "idle") && more) {
    const auto idle = read_integer(words[++at], "ERR Invalid IDLE option argument for XCLAIM");
    claim.delivered_ms = context.now_ms() - std::min(idle, context.now_ms());
  } else if (is_word(word, "time") && more) {
    claim.delivered_ms = read_integer(words[++at], "ERR Invalid TIME option argument for XCLAIM");
  } else if (is_word(word, "retrycount") && more) {
    claim.deliveries =
        read_integer(words[++at], "ERR Invalid RETRYCOUNT option argument for XCLAIM");
  } else if (is_word(word, "lastid") && more) {
    claim.last_id = read_stream_id(words[++at]);
  } else {
    refuse(fmt::format("ERR Unrecognized XCLAIM option '{}'", word));
  }
}

Claim read_claim(Context& context, Words words) {
  Claim claim;
  claim.min_idle = std::max<std::int64_t>(
      read_integer(words[4], "ERR Invalid min-idle-time argument for XCLAIM"), 0);
  std::size_t at = 5;
  for (; at < words.size(); ++at) {
    const auto id = parse_stream_id(words[at], 0);
    if (!id) break;  // the options begin
    claim.ids.push_back(*id);
  }
  for (; at < words.size(); ++at) read_claim_option(context, words, at, claim);
  // A time in the future would be an entry that is never idle; a log that is replayed knows better.
  if (claim.delivered_ms < 0 ||
      (claim.delivered_ms > context.now_ms() && !context.engine().loading))
    claim.delivered_ms = context.now_ms();
  return claim;
}

/// The entry goes to the consumer; null: it was not pending, or not idle for long enough.
StreamGroup::Pending* claim_one(Context& context, StreamGroup& group,
                                StreamGroup::Consumer& consumer, const Claim& claim, StreamId id) {
  auto* pending = group.find_pending(id);
  if (!pending) {
    if (!claim.force) return nullptr;
    pending = &group.assign(id, consumer, claim.delivered_ms, 1, context.undo());
  } else if (claim.min_idle > 0 && idle_ms(context, *pending) < claim.min_idle) {
    return nullptr;
  }
  auto deliveries = pending->deliveries;
  if (claim.deliveries >= 0) {
    deliveries = static_cast<std::uint64_t>(claim.deliveries);
  } else if (!claim.just_id) {
    ++deliveries;
  }
  return &group.assign(id, consumer, claim.delivered_ms, deliveries, context.undo());
}

void reply_claimed(Reply& reply, const Stream& stream, const std::vector<StreamId>& claimed,
                   bool just_id) {
  reply.array(claimed.size());
  for (const auto id : claimed)
    just_id ? reply_id(reply, id) : reply_entry(reply, *stream.find(id));
}

void xclaim(Context& context, Words words, Reply& reply) {
  const auto [stream, group] = find_group(context, words[1], words[2]);
  const auto claim = read_claim(context, words);
  const bool moved = claim.last_id > group.last_id;
  if (moved) group.expect_move(context.undo());
  if (moved) group.last_id = claim.last_id;

  auto& consumer = consumer_of(context, group, words[1], words[2], words[3]);
  ClaimLog log{context, words, group};
  std::vector<StreamId> claimed;
  for (const auto id : claim.ids) {
    if (!stream.contains(id)) {
      if (!group.acknowledge(id, context.undo())) continue;
      log.dropped(id);
      context.changed();
      continue;
    }
    const auto* pending = claim_one(context, group, consumer, claim, id);
    if (!pending) continue;
    claimed.push_back(id);
    log.claimed(id, *pending);
    context.changed();
  }
  log.flush();
  if (moved && claimed.empty()) {
    context.changed();
    log_position(context, words[1], words[2], group);
  }
  reply_claimed(reply, stream, claimed, claim.just_id);
}

struct AutoClaim {
  Claim claim;
  StreamId start;
  std::int64_t count = 100;
};

AutoClaim read_auto_claim(Context& context, Words words) {
  AutoClaim wanted;
  auto& claim = wanted.claim;
  claim.min_idle = std::max<std::int64_t>(
      read_integer(words[4], "ERR Invalid min-idle-time argument for XAUTOCLAIM"), 0);
  claim.delivered_ms = context.now_ms();
  wanted.start = read_range_start(words[5]);
  for (std::size_t at = 6; at < words.size(); ++at) {
    if (is_word(words[at], "count") && at + 1 < words.size()) {
      wanted.count =
          read_integer_between(words[++at], 1, largest_integer / 32, "ERR COUNT must be > 0");
    } else if (is_word(words[at], "justid")) {
      claim.just_id = true;
    } else {
      refuse(syntax_error);
    }
  }
  return wanted;
}

void xautoclaim(Context& context, Words words, Reply& reply) {
  // As many entries that are not idle must not hold up the engine.
  constexpr std::int64_t looks_per_claim = 10;
  const auto wanted = read_auto_claim(context, words);
  const auto [stream, group] = find_group(context, words[1], words[2]);

  auto& consumer = consumer_of(context, group, words[1], words[2], words[3]);
  ClaimLog log{context, words, group};
  std::vector<StreamId> claimed;
  std::vector<StreamId> deleted;
  auto at = group.pending().lower_bound(wanted.start);
  auto looks = wanted.count * looks_per_claim;
  for (auto left = wanted.count; at != group.pending().end() && looks > 0 && left > 0; --looks) {
    const auto id = at->first;
    ++at;
    if (!stream.contains(id)) {
      group.acknowledge(id, context.undo());
      log.dropped(id);
      deleted.push_back(id);
      --left;
    } else if (const auto* pending = claim_one(context, group, consumer, wanted.claim, id)) {
      log.claimed(id, *pending);
      claimed.push_back(id);
      --left;
    }
  }
  log.flush();
  context.changed(claimed.size() + deleted.size());

  reply.array(3);
  reply_id(reply, at == group.pending().end() ? StreamId{} : at->first);
  reply_claimed(reply, stream, claimed, wanted.claim.just_id);
  reply.array(deleted.size());
  for (const auto id : deleted) reply_id(reply, id);
}

}  // namespace

CommandRows stream_claim_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"xautoclaim", xautoclaim}, {"xclaim", xclaim}, {"xpending", xpending}};
  return rows;
}

}  // namespace sluice::engine
