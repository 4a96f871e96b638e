// The library without the embedded engine: it says so where somebody asks for the engine.
#include <cstdio>
#include <cstring>
#include <sluice/lock.hpp>
#include <sluice/open.hpp>

int main() {
  try {
    const auto store = sluice::open("embedded:");
    sluice::Mutex mutex{*store, "stock:42"};
    return 1;
  } catch (const sluice::Error& error) {
    std::printf("%s\n", error.what());
    return std::strstr(error.what(), "without the embedded engine") != nullptr ? 0 : 1;
  }
}
