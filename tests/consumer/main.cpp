// What a user's first program does: it compiles with the installed headers and runs with the
// installed library alone.
#include <cstdio>
#include <sluice/sluice.hpp>

int main() {
  try {
    const auto store = sluice::open("embedded:");

    sluice::Mutex mutex{*store, "stock:42"};
    const auto held = mutex.try_acquire().get();
    if (!held || !held->valid()) return 1;

    sluice::Series series{*store, "MT", {.zone = "Asia/Shanghai"}};
    const auto number = series.next().get();
    if (!number || number->text.size() != 14) return 1;

    sluice::IdWorker ids{*store, "order-id"};
    const auto first = ids.next().get();
    if (ids.next().get() <= first) return 1;

    sluice::BloomFilter seen;
    if (!seen.add(number->text) || !seen.contains(number->text)) return 1;

    std::printf("%s under token %llu\n", number->text.c_str(),
                static_cast<unsigned long long>(held->token().value));
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
