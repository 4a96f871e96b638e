/// What the service refuses, and how failures of the library become answers.
#pragma once

#include <exception>
#include <string>
#include <utility>

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

/// A failure of which a client is told what to do.
class AdvisedError : public Error {
 public:
  AdvisedError(std::string advice, const Error& failure)
      : Error{sale::is_of_database(failure) ? Errc::database : failure.errc(),
              advice + ": " + failure.message(), failure.effect()},
        advice_(std::move(advice)) {}
  const std::string& advice() const noexcept { return advice_; }

 private:
  std::string advice_;
};

/// A failure of the store, as an answer: whether the effect may have happened decides which. What
/// it says goes to the log; a stranger learns no address of a server.
http::Response problem_of(const std::exception& failure);
/// The same of what changes nothing: whether it had an effect is no question.
http::Response problem_of_read(const std::exception& failure);

}  // namespace sluice::server
