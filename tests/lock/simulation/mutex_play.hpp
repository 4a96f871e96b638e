/// Comes and goes by Mutex: with and without patience, as an Owner or as nobody in particular.
#pragma once

#include "lock/simulation/world.hpp"

namespace sluice::simulation {

std::unique_ptr<Play> play_mutex(World& world);

}  // namespace sluice::simulation
