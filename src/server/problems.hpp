/// What the service refuses, and how failures of the library become answers.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "http/response.hpp"
#include "sale/database_failure.hpp"
#include "sluice/error.hpp"

namespace sluice::server {

namespace problems {
#define PROBLEM(name, status, title) inline constexpr http::ProblemType name{#name, status, title};
#include "server/problem.def"
#undef PROBLEM
}  // namespace problems

inline constexpr std::array all_problems{
#define PROBLEM(name, status, title) &problems::name,
#include "server/problem.def"
#undef PROBLEM
};

/// A failure that is told in its own words, as to operators.
class ToldError : public Error {
 public:
  explicit ToldError(const Error& failure, std::string_view advice = {})
      : Error{sale::is_of_database(failure) ? Errc::database : failure.errc(),
              std::string{advice} + failure.message(), failure.effect()} {}
};

/// A failure of the store, as an answer: whether the effect may have happened decides which. What
/// it says goes to the log; a stranger learns no address of a server.
http::Response problem_of(const std::exception& failure);
/// The same of what changes nothing: whether it had an effect is no question.
http::Response problem_of_read(const std::exception& failure);

}  // namespace sluice::server
