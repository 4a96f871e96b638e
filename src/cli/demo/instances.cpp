#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <stop_token>

#include "cli/command_line/streams.hpp"
#include "cli/demo/crowd.hpp"
#include "cli/demo/instance.hpp"
#include "sluice/open.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {
Tally hold_sale_in_processes(const InstancePlan& plan) {
  std::vector<std::unique_ptr<Instance>> instances;
  const auto count = static_cast<std::uint64_t>(plan.instances);
  // The URL may hold a password, and a process title is for all to see: it goes by the environment.
  ::setenv("SLUICE_STORE", plan.store.c_str(), 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    instances.push_back(std::make_unique<Instance>(
        std::vector<std::string>{"/proc/self/exe"},
        std::vector<std::string>{"sluice", "demo-instance", plan.sale,
                                 std::to_string(plan.buyers * i / count),
                                 std::to_string(plan.buyers * (i + 1) / count)}));
  }
  const std::stop_callback stopping{plan.stop, [&] {
                                      for (const auto& instance : instances) instance->terminate();
                                    }};
  for (const auto& instance : instances) instance->line();  // "ready"
  for (const auto& instance : instances) instance->go();
  Tally all;
  for (const auto& instance : instances) all.add(tally_of(instance->line()));
  return all;
}

int serve_instance(const std::string& store_url, const std::string& name, const Crowd& crowd) {
  const auto store = open(store_url);
  auto sale = Sale::load(*store, name).get();
  if (!sale)
    throw Error{Errc::bad_argument, fmt::format("{} knows no sale '{}'", store->describe(), name)};
  put_text("ready\n");
  flush_output();
  char nothing = 0;
  while (::read(STDIN_FILENO, &nothing, 1) > 0) {
  }
  std::atomic<std::uint64_t> answered{0};
  put("{}\n", line_of(hold_sale(*sale, store->clock(), crowd, answered)));
  return 0;
}

}  // namespace sluice::cli
