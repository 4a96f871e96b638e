#include <stdexcept>

#include "proxy/storm/tongue.hpp"

namespace sluice::test {
std::unique_ptr<Tongue> make_redis_tongue() { throw std::runtime_error{"not yet"}; }
}  // namespace sluice::test
