#include "proxy/watch/big_values.hpp"

#include <algorithm>

#include "proxy/watch/excerpt.hpp"

namespace sluice::proxy {

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

}  // namespace sluice::proxy
