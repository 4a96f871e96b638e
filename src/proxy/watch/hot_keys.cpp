#include "proxy/watch/hot_keys.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "proxy/watch/notable_requests.hpp"

namespace sluice::proxy::watch {
namespace {

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>{time}.count();
}

}  // namespace

HotKeys::HotKeys(HotKeyOptions options, SteadyTime now)
    : options_(options), faded_(now), since_(now) {
  until_sample_ = next_gap();
}

std::uint32_t HotKeys::next_gap() noexcept {  // xorshift64; the mean is `sample`
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return 1 + static_cast<std::uint32_t>(random_ % (2 * std::uint64_t{options_.sample} - 1));
}

void HotKeys::take(std::string_view key, SteadyTime now) {
  until_sample_ = next_gap();
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock) return;
  fade(now);
  all_ += options_.sample;
  place(std::max<std::uint64_t>(std::hash<std::string_view>{}(key), 1), key);
}

void HotKeys::place(std::uint64_t hash, std::string_view key) {
  const auto found = std::ranges::find(hashes_, hash) - hashes_.begin();
  if (const auto at = static_cast<std::size_t>(found); at < slots) {
    counts_[at] += options_.sample;
    return;
  }
  const auto least = static_cast<std::size_t>(std::ranges::min_element(counts_) - counts_.begin());
  Slot& slot = slots_[least];
  hashes_[least] = hash;
  slot.surplus = counts_[least];
  counts_[least] += options_.sample;
  slot.size = static_cast<std::uint8_t>(std::min(key.size(), slot.text.size()));
  slot.cut = key.size() > slot.text.size();
  std::ranges::copy(key.substr(0, slot.size), slot.text.begin());
}

void HotKeys::fade(SteadyTime now) {
  constexpr int enough = 64;  // half-lives after which nothing is left
  for (int turn = 0; now - faded_ >= options_.half_life; ++turn) {
    if (turn == enough) {
      faded_ = since_ = now;
      break;
    }
    faded_ += options_.half_life;
    old_seconds_ = (old_seconds_ + seconds_of(faded_ - since_)) / 2;
    since_ = faded_;
    all_ /= 2;
    for (double& count : counts_) count /= 2;
    for (Slot& slot : slots_) slot.surplus /= 2;
  }
}

HotKeys::Counted HotKeys::counted(SteadyTime now) const {
  const std::lock_guard lock{mutex_};
  Counted counted;
  counted.all = all_;
  counted.seconds = old_seconds_ + seconds_of(now - since_);
  for (std::size_t i = 0; i < slots; ++i) {
    const Slot& slot = slots_[i];
    if (counts_[i] <= slot.surplus) continue;
    std::string key = excerpt({slot.text.data(), slot.size});
    if (slot.cut) key += "...";
    counted.entries.push_back(
        {hashes_[i], std::move(key), counts_[i] - slot.surplus, slot.surplus});
  }
  return counted;
}

std::vector<HotKey> HotKeys::top(const std::vector<Counted>& workers, std::size_t most) {
  std::unordered_map<std::uint64_t, HotKey> merged;
  double all = 0;
  for (const Counted& worker : workers) {
    all += worker.all;
    for (const auto& entry : worker.entries) {
      HotKey& hot = merged[entry.hash];
      hot.key = entry.key;
      hot.share += entry.certain;
      const double seconds = std::max(worker.seconds, 1.0);
      hot.rate += entry.certain / seconds;
      hot.most_rate += (entry.certain + entry.surplus) / seconds;
    }
  }
  std::vector<HotKey> hottest;
  for (auto& [hash, hot] : merged) {
    hot.share /= std::max(all, 1.0);
    hottest.push_back(std::move(hot));
  }
  std::ranges::sort(hottest, [](auto& a, auto& b) {
    return a.share != b.share ? a.share > b.share : a.key < b.key;
  });
  if (hottest.size() > most) hottest.resize(most);
  return hottest;
}

}  // namespace sluice::proxy::watch
