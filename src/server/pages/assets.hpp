/// The files of pages/, which are part of the program.
#pragma once

#include <span>

#include "server/asset.hpp"

namespace sluice::server {

std::span<const Asset> assets_of_pages() noexcept;

}  // namespace sluice::server
