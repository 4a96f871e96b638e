#include "server/background.hpp"

#include <memory>
#include <utility>

#include "server/problems.hpp"

namespace sluice::server {

void in_background(BlockingThreads& threads, const std::string& subject, http::Responder&& respond,
                   std::function<http::Response(OrderStore&)> work, const std::string& sale) {
  using namespace std::chrono_literals;
  const auto answer = std::make_shared<http::Responder>(std::move(respond));
  const auto accepted = threads.run(
      subject, [answer, work = std::move(work)](OrderStore& orders) { answer->send(work(orders)); },
      [answer](const std::exception& failure) { answer->send(problem_of(failure)); }, sale);
  if (accepted == BlockingThreads::Accepted::yes) return;
  auto refusal = http::problem(accepted == BlockingThreads::Accepted::subject_has_too_many
                                   ? problems::too_many_requests
                                   : problems::busy);
  http::add_retry_after(refusal, 1s);
  answer->send(std::move(refusal));
}

}  // namespace sluice::server
