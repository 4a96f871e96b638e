/// What a process that is measured has cost so far, as the kernel counts it.
#pragma once

#include <sys/types.h>

namespace sluice::bench {

/// Time on a processor, of all threads that it has now.
double cpu_us_of(pid_t process);
/// Bytes of its own: not what it has mapped of files, such as a page of its code that it runs for
/// the first time.
double memory_of(pid_t process);

}  // namespace sluice::bench
