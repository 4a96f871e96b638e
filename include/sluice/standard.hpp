/// The parts of <chrono>, <functional> and <memory> that public headers show: durations and clocks,
/// std::function, and the two pointers. In libstdc++ each has a header of its own; the calendars,
/// streams and algorithms around them cost a user's file 0.3 s more.
#pragma once

#if defined(__has_include) && __has_include(<bits/chrono.h>) && \
    __has_include(<bits/shared_ptr.h>) && __has_include(<bits/std_function.h>)
#include <bits/chrono.h>        // IWYU pragma: export
#include <bits/shared_ptr.h>    // IWYU pragma: export
#include <bits/std_function.h>  // IWYU pragma: export
#include <bits/unique_ptr.h>    // IWYU pragma: export
#else
#include <chrono>      // IWYU pragma: export
#include <functional>  // IWYU pragma: export
#include <memory>      // IWYU pragma: export
#endif
