/// The way from the synchronizers into what they hand out.
#pragma once

#include "lock/hold/owner.hpp"
#include "sluice/held.hpp"

namespace sluice::lock {

struct Access {
  static Held held(std::shared_ptr<Hold> hold) noexcept { return Held{std::move(hold)}; }
  static const std::shared_ptr<OwnerState>& state(const Owner& owner) noexcept {
    return owner.state_;
  }
};

}  // namespace sluice::lock
