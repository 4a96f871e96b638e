#include "server/background.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "server/problems.hpp"

namespace sluice::server {
namespace {

/// Of two threads, one with the answer and one that says that it is late, the first is heard.
class FirstAnswer {
 public:
  FirstAnswer(http::Responder&& respond, ShowRefusal show_refusal)
      : respond_(std::move(respond)), show_refusal_(std::move(show_refusal)) {}
  void send(http::Response response) {
    if (!is_sent_.exchange(true)) respond_.send(std::move(response));
  }
  void refuse(http::Response refusal) {
    send(show_refusal_ ? show_refusal_(refusal) : std::move(refusal));
  }

 private:
  std::atomic<bool> is_sent_{false};
  http::Responder respond_;
  const ShowRefusal show_refusal_;
};

}  // namespace

void in_background(BlockingThreads& threads, const std::string& subject, http::Responder&& respond,
                   std::function<http::Response(OrderStore&)> work, const std::string& sale,
                   std::optional<std::size_t> most_waiting, ShowRefusal show_refusal,
                   bool only_reads) {
  in_background_lazily(
      threads, subject, std::move(respond),
      [work = std::move(work)](const BlockingThreads::Orders& orders) { return work(orders()); },
      sale, most_waiting, {}, std::move(show_refusal), only_reads);
}

void in_background_lazily(BlockingThreads& threads, const std::string& subject,
                          http::Responder&& respond,
                          std::function<http::Response(const BlockingThreads::Orders&)> work,
                          const std::string& sale, std::optional<std::size_t> most_waiting,
                          std::optional<std::chrono::milliseconds> within, ShowRefusal show_refusal,
                          bool only_reads) {
  using namespace std::chrono_literals;
  const auto answer = std::make_shared<FirstAnswer>(std::move(respond), std::move(show_refusal));
  const auto accepted = threads.run_lazily(
      subject,
      [answer, work = std::move(work)](const BlockingThreads::Orders& orders) {
        answer->send(work(orders));
      },
      [answer, only_reads](const std::exception& failure) {
        answer->refuse(only_reads ? problem_of_read(failure) : problem_of(failure));
      },
      sale, most_waiting, within.value_or(threads.limits().answer));
  if (accepted == BlockingThreads::Accepted::yes) return;
  auto refusal = http::problem(accepted == BlockingThreads::Accepted::subject_has_too_many
                                   ? problems::too_many_requests
                                   : problems::busy);
  http::add_retry_after(refusal, 1s);
  answer->refuse(std::move(refusal));
}

}  // namespace sluice::server
