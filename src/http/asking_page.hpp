/// Of which site the page is that makes a browser ask.
#pragma once

#include <cstdint>

#include "http/request.hpp"

namespace sluice::http {

enum class AskingPage : std::uint8_t {
  ours,
  anothers,
  unknown,  ///< a program asks, an old browser, or a person who has typed the address
};

/// What a browser says. Where it tells the site (newer ones do, but over plain HTTP to a name),
/// that decides; else the origin does: it is ours where it is the host that was asked. The scheme
/// does not count, since a proxy may speak TLS for us.
AskingPage asking_page(const Request& request);

}  // namespace sluice::http
