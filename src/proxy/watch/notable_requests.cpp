#include "proxy/watch/notable_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sluice::proxy::watch {

std::string excerpt(std::string_view key, std::size_t most) {
  std::string text;
  for (const char c : key.substr(0, most)) {
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (key.size() > most) text += "...";
  return text;
}

void SlowLog::note(const SlowRequest& request, WallTime now) {
  static std::atomic<std::uint64_t> last_id{0};
  SlowEntry entry{.id = last_id.fetch_add(1, std::memory_order_relaxed) + 1,
                  .at = now,
                  .took = std::chrono::duration_cast<std::chrono::microseconds>(request.took),
                  .pool = std::string{request.pool},
                  .command = std::string{request.command},
                  .key = excerpt(request.key),
                  .client = std::string{request.client},
                  .server = std::string{request.server}};
  const std::lock_guard lock{mutex_};
  entries_.push_front(std::move(entry));
  if (entries_.size() > most_) entries_.resize(most_);
}

void SlowLog::set_limits(std::size_t entries, std::chrono::microseconds threshold) {
  threshold_ns_.store(std::chrono::nanoseconds{threshold}.count(), std::memory_order_relaxed);
  const std::lock_guard lock{mutex_};
  most_ = entries;
  if (entries_.size() > most_) entries_.resize(most_);
}

std::vector<SlowEntry> SlowLog::entries() const {
  const std::lock_guard lock{mutex_};
  return {entries_.begin(), entries_.end()};
}

void SlowLog::reset() {
  const std::lock_guard lock{mutex_};
  entries_.clear();
}

void BigValues::note(std::uint64_t bytes, std::string_view pool, std::string_view command,
                     std::string_view key, WallTime now) {
  BigValue fresh{now, bytes, std::string{pool}, std::string{command}, excerpt(key)};
  const std::lock_guard lock{mutex_};
  std::erase_if(values_, [&](const BigValue& old) {
    const bool same =
        old.key == fresh.key && old.command == fresh.command && old.pool == fresh.pool;
    return same || now - old.at > memory;
  });
  const auto place = std::ranges::find_if(
      values_, [&](const BigValue& other) { return other.bytes < fresh.bytes; });
  values_.insert(place, std::move(fresh));
  if (values_.size() > entries) values_.pop_back();
}

std::vector<BigValue> BigValues::values(WallTime now) const {
  const std::lock_guard lock{mutex_};
  std::vector<BigValue> recent;
  std::ranges::copy_if(values_, std::back_inserter(recent),
                       [&](const BigValue& value) { return now - value.at <= memory; });
  return recent;
}

}  // namespace sluice::proxy::watch
