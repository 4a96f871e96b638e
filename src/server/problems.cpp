#include "server/problems.hpp"

#include "sluice/log.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

const http::ProblemType& kind_of(const Error& failure, bool only_reads) {
  if (failure.effect() == Effect::unknown && !only_reads) return problems::effect_unknown;
  if (sale::is_of_database(failure)) return problems::database_failed;
  if (failure.errc() == Errc::overloaded) return problems::busy;
  return problems::store_failed;
}

http::Response problem_of(const std::exception& failure, bool only_reads) {
  const auto* const known = dynamic_cast<const Error*>(&failure);
  if (known && known->errc() == Errc::bad_argument)
    return http::problem(problems::bad_parameter, known->message());
  log(LogLevel::warning, failure.what());
  if (!known) return http::problem(http::problems::internal_error);
  const auto* const told = dynamic_cast<const ToldError*>(known);
  auto response =
      http::problem(kind_of(*known, only_reads), told ? told->message() : std::string{});
  http::add_retry_after(response, 1s);
  return response;
}

}  // namespace

http::Response problem_of(const std::exception& failure) { return problem_of(failure, false); }

http::Response problem_of_read(const std::exception& failure) { return problem_of(failure, true); }

}  // namespace sluice::server
