/// What Prometheus asks for: the counters of this process as text.
///   metrics_page [URL]     default: embedded:
#include <fmt/format.h>

#include <sluice/metrics.hpp>
#include <sluice/mutex.hpp>
#include <sluice/open.hpp>

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Mutex mutex{*store, "books:closing"};
  mutex.acquire().get().release().get();

  // Give this text to whatever answers GET /metrics. The labels are of your choice.
  fmt::print("{}", sluice::prometheus_text({{"service", "shop"}}));
}
