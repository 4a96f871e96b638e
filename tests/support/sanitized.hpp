#pragma once

namespace sluice::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif

/// How often to do what is random: `count` times in the plain tree, a fifth of it where a sanitizer
/// makes each time twenty times as long. The seeds of the sanitizers are the first of the others.
template <class Count>
constexpr Count rounds(Count count) {
  return is_sanitized ? (count + 4) / 5 : count;
}

}  // namespace sluice::test
