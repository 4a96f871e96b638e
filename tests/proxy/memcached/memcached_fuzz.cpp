// Requests with their plans, and replies, of any bytes.
#include <cstdint>

#include "proxy/support/fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::proxy;
  static const auto relaxed = make_memcached_protocol(fuzzed_settings(Compat::relaxed));
  static const auto strict = make_memcached_protocol(fuzzed_settings(Compat::strict));
  fuzz_protocol(*relaxed, *strict, {reinterpret_cast<const char*>(data), size});
  return 0;
}
