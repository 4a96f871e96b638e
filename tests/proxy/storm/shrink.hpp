/// The least of a case that still fails.
#pragma once

#include <functional>
#include <vector>

#include "proxy/storm/round.hpp"

namespace sluice::test {

/// `fails` is asked of smaller and smaller ones, until none is smaller or it has been asked `most`
/// times.
std::vector<Round> shrink(std::vector<Round> rounds,
                          const std::function<bool(const std::vector<Round>&)>& fails,
                          std::size_t most);

}  // namespace sluice::test
