/// Defines SLUICE_THREAD_SANITIZER where ThreadSanitizer watches: each compiler says it otherwise.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define SLUICE_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER
#endif
#endif
