/// What a database sees when cached values end, for the picture of docs/cache.md.
#pragma once

namespace sluice::bench {

/// Prints lines "panel,series,ms,loads a second" to stdout.
void print_storms();

}  // namespace sluice::bench
