#include "engine/types/stream_group.hpp"

namespace sluice::engine {

StreamGroup::StreamGroup(const StreamGroup& other)
    : last_id(other.last_id), entries_read(other.entries_read) {
  for (const auto& [name, consumer] : other.consumers_) add_consumer(name, consumer.seen_ms);
  for (const auto& [id, pending] : other.pending_)
    assign(id, *find_consumer(pending.consumer->name), pending.delivered_ms, pending.deliveries);
}

StreamGroup::Consumer* StreamGroup::find_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : &found->second;
}

StreamGroup::Consumer& StreamGroup::add_consumer(std::string_view name, std::int64_t now_ms) {
  return consumers_.try_emplace(std::string{name}, Consumer{std::string{name}, now_ms})
      .first->second;
}

std::size_t StreamGroup::erase_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return 0;
  const auto count = found->second.pending.size();
  for (const auto& [id, pending] : found->second.pending) pending_.erase(id);
  consumers_.erase(found);
  return count;
}

StreamGroup::Pending* StreamGroup::find_pending(StreamId id) {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

StreamGroup::Pending& StreamGroup::assign(StreamId id, Consumer& consumer,
                                          std::int64_t delivered_ms, std::uint64_t deliveries) {
  const auto size = pending_.size();
  const auto place =
      pending_.empty() || pending_.rbegin()->first < id ? pending_.end() : pending_.lower_bound(id);
  auto& pending =
      pending_.try_emplace(place, id, Pending{&consumer, delivered_ms, deliveries})->second;
  if (pending_.size() == size && pending.consumer != &consumer) pending.consumer->pending.erase(id);
  pending = {&consumer, delivered_ms, deliveries};
  consumer.pending.insert_or_assign(consumer.pending.end(), id, &pending);
  return pending;
}

bool StreamGroup::acknowledge(StreamId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return false;
  found->second.consumer->pending.erase(id);
  pending_.erase(found);
  return true;
}

}  // namespace sluice::engine
