#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "base/json_value.hpp"
#include "cli/demo/crowd.hpp"
#include "cli/demo/instance.hpp"
#include "cli/programs.hpp"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

/// A process of another program. Throws std::runtime_error when it is not installed.
std::unique_ptr<Instance> start(std::string_view command, const Words& words) {
  const auto& program = program_of(command);
  try {
    return std::make_unique<Instance>(places_of(program), words);
  } catch (const std::system_error& failure) {
    if (failure.code().value() != ENOENT) throw;
    throw std::runtime_error{not_found_text(program)};
  }
}

/// The processes that serve; they are told to stop when the sale is over, or when something threw.
class Served {
 public:
  /// Their URLs may hold passwords, and a process title is for all to see: they go by the
  /// environment.
  explicit Served(const ServedPlan& plan) {
    ::setenv("SLUICE_STORE", plan.store.c_str(), 1);
    ::setenv("SLUICE_ORDERS", plan.orders.c_str(), 1);
    for (int i = 0; i < plan.instances; ++i)
      all_.push_back(
          start("serve", {"sluice", "serve", "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0",
                          "--notice", "0s", "--json", "--sale", plan.sale}));
    for (const auto& one : all_) urls_.push_back(url_in(one->line()));
  }
  ~Served() { terminate(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  const std::vector<std::string>& urls() const noexcept { return urls_; }

  /// Their workers finish their batches.
  void stop() {
    terminate();
    for (const auto& one : all_)
      if (const int status = one->wait(); status != 0)
        throw std::runtime_error{fmt::format("an instance of the demo ended with {}", status)};
  }

 private:
  static std::string url_in(const std::string& greeting) {
    const auto told = JsonValue::parse(greeting, {});
    const auto* const url = told ? told->find("url") : nullptr;
    if (!url || !url->as_text())
      throw std::runtime_error{"an instance of the demo greeted with nonsense: " + greeting};
    return *url->as_text();
  }
  void terminate() const noexcept {
    for (const auto& one : all_) one->terminate();
  }

  std::vector<std::unique_ptr<Instance>> all_;
  std::vector<std::string> urls_;
};

/// "NANOSECONDS TALLY".
ServedSale sale_of(const std::string& line) {
  char* end = nullptr;
  const std::chrono::nanoseconds clicking{std::strtoll(line.c_str(), &end, 10)};
  return {tally_of(end), clicking};
}

/// The buyers are a process of the load test's program, so that this one does without it.
ServedSale let_them_buy(const ServedPlan& plan, const std::vector<std::string>& urls,
                        const std::stop_token& stop,
                        const std::function<void(const std::string&)>& progress) {
  Words words{"sluice", "demo-crowd", plan.sale, std::to_string(plan.buyers)};
  words.insert(words.end(), urls.begin(), urls.end());
  const auto crowd = start("loadtest", words);
  const std::stop_callback stopping{stop, [&] { crowd->terminate(); }};
  for (;;) {
    auto line = crowd->line();
    if (!line.starts_with(progress_mark)) return sale_of(line);
    progress(line.substr(1));
  }
}

}  // namespace

ServedSale hold_sale_over_http(const ServedPlan& plan, const std::stop_token& stop,
                               const std::function<void(const std::string&)>& progress) {
  Served served{plan};
  auto sold = let_them_buy(plan, served.urls(), stop, progress);
  served.stop();
  return sold;
}

}  // namespace sluice::cli
