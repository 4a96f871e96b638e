/// What a fuzz target demands of every input. It does not hold: the fuzzer has found something.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice::test {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

}  // namespace sluice::test
