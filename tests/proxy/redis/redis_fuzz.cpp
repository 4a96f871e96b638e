// Requests with their plans, and replies, of any bytes.
#include <cstdint>

#include "proxy/support/fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::proxy;
  fuzz_protocol([](const PoolSettings& settings) { return make_redis_protocol(settings); },
                {reinterpret_cast<const char*>(data), size});
  return 0;
}
