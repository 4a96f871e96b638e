/// What loads have lately thrown, so that the next calls are told and load nothing: of some 2,000
/// keys, of which those that nobody asks for go first.
///
/// Threads: any.
#pragma once

#include <exception>
#include <string_view>

#include "cache/near_cache.hpp"

namespace sluice::cache {

class Failures {
 public:
  using Fill = NearCache::Fill;

  /// False: none is kept.
  explicit Failures(bool keeps);

  /// Null: none is known.
  std::exception_ptr find(std::string_view value_key, SteadyTime now);
  /// Before the load begins.
  Fill begin(std::string_view value_key, SteadyTime now) const;
  /// When it has failed, unless the key was forgotten meanwhile.
  void keep(const Fill& fill, std::string_view value_key, std::exception_ptr error,
            SteadyTime until);
  /// The key has changed.
  void forget(std::string_view value_key);
  void forget_all() { cache_.flush(); }

 private:
  NearCache cache_;
};

}  // namespace sluice::cache
