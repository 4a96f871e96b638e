/// The token that a request brings: `Authorization: Bearer TOKEN`.
#pragma once

#include <string_view>

#include "http/response.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

/// A field that stands twice is refused: what stands between us and the client may have looked at
/// the other one.
Expected<std::string_view, http::Response> bearer_of(const http::Request& request,
                                                     const http::ProblemType& refusal);

/// A problem that says how one proves who he is, where the answer is 401.
http::Response refuse_credentials(const http::ProblemType& type, std::string_view detail);

}  // namespace sluice::server
