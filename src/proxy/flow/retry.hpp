/// When a request may be asked again behind its client's back, without the client seeing its
/// requests in another order than it asked them.
///
/// Asked again, a request is done after those that were behind it: on a connection that breaks they
/// may have been done. So a read is asked again only while no write of the same client stands
/// behind it, and what may be a write only while nothing does. What the client asks later goes over
/// the same new connection, behind it.
#pragma once

#include "proxy/flow/request.hpp"

namespace sluice::proxy {

enum class Behind : std::uint8_t { writes, anything };

/// Whether a later request of the client that has no outcome yet is such. With very many behind it
/// is taken to be.
bool has_behind(const Request& request, Behind what) noexcept;

/// Whether `asked` is a read whose connection has broken, and which may be asked once more. `whole`
/// stands for it in its client's line: itself, or what it is a fragment of. A read that took too
/// long is not asked again: the server has work enough.
bool may_ask_again(const Request& asked, const Request& whole, Failure failure) noexcept;

}  // namespace sluice::proxy
