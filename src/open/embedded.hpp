/// The embedded engine behind open(): there, or left out of the library by the user's choice
/// (sluice::client).
#pragma once

#include <memory>

#include "base/url.hpp"
#include "sluice/open.hpp"

namespace sluice {

/// Opens `embedded:` and `embedded:/folder`. Throws Error{bad_argument} where the engine was left
/// out.
std::unique_ptr<Store> open_embedded(const Url& url, const OpenOptions& options);

}  // namespace sluice
