/// `sluice semaphore NAME --permits N -- CMD`: at most so many commands at a time.
#include "sluice/semaphore.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/hold_and_run.hpp"

namespace sluice::cli {
namespace {

struct SemaphoreArgs {
  RunArgs run;
  std::uint32_t permits = 0;
  std::uint32_t count = 1;
};

Acquire prepare(const Globals& globals, const SemaphoreArgs& args) {
  const std::shared_ptr<Store> store = open_store(globals);
  const auto semaphore =
      std::make_shared<Semaphore>(*store, args.run.name,
                                  SemaphoreOptions{.lease = parse_duration(args.run.lease),
                                                   .label = args.run.label_or_command()});
  if (args.permits > 0) semaphore->try_set_permits(args.permits).get();
  return [store, semaphore, count = args.count](std::chrono::milliseconds wait,
                                                std::stop_token stop) -> std::optional<Holding> {
    auto held = semaphore->try_acquire(count, wait, std::move(stop)).get();
    if (!held) {
      store->run({"PING"}).get();  // the place in the queue is given up before that
      return std::nullopt;
    }
    return holding_of(std::move(*held), std::nullopt);
  };
}

}  // namespace

void add_semaphore_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand("semaphore", "Run at most so many commands at a time");
  const auto args = std::make_shared<SemaphoreArgs>();
  add_run_options(*command, args->run, "the semaphore");
  add_hold_options(*command, args->run);
  const auto number = CLI::Range(std::uint32_t{1}, Semaphore::most);
  command
      ->add_option("--permits", args->permits,
                   "How many there are, if nobody has said so yet; without it somebody has")
      ->check(number);
  command->add_option("--count", args->count, "How many this command takes")
      ->capture_default_str()
      ->check(number);
  command->callback([&globals, &action, args] {
    action = [&globals, args] {
      const Words words{.what = fmt::format("semaphore '{}'", args->run.name),
                        .busy = fmt::format("has not {} free", args->count)};
      return hold_and_run(globals, args->run, words, [&] { return prepare(globals, *args); });
    };
  });
}

}  // namespace sluice::cli
