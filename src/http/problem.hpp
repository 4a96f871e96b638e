/// Kinds of refusals, as Problem Details name them (RFC 9457).
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace sluice::http {

/// A row of a table of problems. The name, with '-', is the stable end of its `type`.
struct ProblemType {
  std::string_view name;  ///< "sold_out"
  int status = 500;
  std::string_view title;
};

/// "urn:sluice:problem:sold-out"
std::string type_of(const ProblemType& problem);

/// Those of this library: each route may answer them.
namespace problems {
#define PROBLEM(name, status, title) inline constexpr ProblemType name{#name, status, title};
#include "http/problem.def"
#undef PROBLEM
}  // namespace problems

inline constexpr std::array own_problems{
#define PROBLEM(name, status, title) &problems::name,
#include "http/problem.def"
#undef PROBLEM
};

}  // namespace sluice::http
