/// A Store by its name alone, and how a std::unique_ptr of it ends: for files that open one and
/// hand it on. To run commands of your own include sluice/store.hpp.
#pragma once

#include <concepts>

#include "sluice/standard.hpp"

namespace sluice {

class Store;

}  // namespace sluice

template <>
struct std::default_delete<sluice::Store> {
  default_delete() = default;
  template <std::derived_from<sluice::Store> T>
  default_delete(const default_delete<T>&) noexcept {}  // NOLINT(*-explicit-constructor): as std's
  void operator()(sluice::Store* store) const noexcept;
};
