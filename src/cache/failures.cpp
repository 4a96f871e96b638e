#include "cache/failures.hpp"

#include <utility>

#include "cache/common.hpp"

namespace sluice::cache {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr std::size_t size_of_one = 256;  // an exception and its text, as a guess

}  // namespace

Failures::Failures(bool keeps) : cache_({.bytes = most_bytes, .max_ttl = longest_time}) {
  if (keeps) cache_.open();
}

std::exception_ptr Failures::find(std::string_view value_key, SteadyTime now) {
  const auto known = cache_.find(value_key, now);
  return known ? *static_cast<const std::exception_ptr*>(known->object.get()) : nullptr;
}

Failures::Fill Failures::begin(std::string_view value_key, SteadyTime now) const {
  return cache_.begin_fill(value_key, now);
}

void Failures::keep(const Fill& fill, std::string_view value_key, std::exception_ptr error,
                    SteadyTime until) {
  if (!cache_.is_open()) return;
  cache_.fill(fill, value_key, {std::make_shared<const std::exception_ptr>(std::move(error))},
              size_of_one, until);
}

void Failures::forget(std::string_view value_key) {
  if (cache_.is_open()) cache_.invalidate(value_key);
}

}  // namespace sluice::cache
