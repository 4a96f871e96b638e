/// A large key, copied piece by piece while its old home serves reads of it: nobody writes to a key
/// that has not moved, so what was copied stays true. See docs/decisions/0020.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "proxy/move/guarded_server.hpp"

namespace sluice::proxy::move {

/// With this the names of copies begin that are not whole. One that is left over is replaced when
/// its key is copied anew.
inline constexpr std::string_view hidden_prefix = "sluice-move:";

/// Behind each piece `rest` is called, which may take its time; false ends it. The copy has a name
/// of its own until it is whole; then it takes the place of the key, and the key is deleted at its
/// old home. Done again from the beginning it does no harm. False: it was ended, or the key is of a
/// type that cannot be taken apart (a stream, a module's), or a hash whose fields may have times to
/// live that we may not ask for.
bool copy_in_pieces(GuardedServer& from, GuardedServer& to, int database, const std::string& key,
                    const std::function<bool()>& rest);

}  // namespace sluice::proxy::move
