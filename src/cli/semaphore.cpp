/// `sluice semaphore NAME --permits N -- CMD`: at most so many commands at a time.
#include "sluice/semaphore.hpp"

#include <fmt/format.h>

#include "cli/hold_and_run.hpp"

namespace sluice::cli {
namespace {

struct SemaphoreArgs {
  RunArgs run;
  std::uint32_t permits = 0;
  std::uint32_t count = 1;
};

/// Why it has not enough: never set, or all taken.
std::string obstacle(Store& store, Semaphore& semaphore) {
  const SemaphoreInfo now = semaphore.info().get();
  const bool was_set = store.run({"EXISTS", semaphore.name()}).get().as_integer() != 0;
  if (!was_set && now.holders.empty())
    return "nobody has said how many there are; say it with --permits N";
  std::int64_t held = 0;
  for (const auto& holder : now.holders) held += holder.permits;
  return fmt::format("{} free, {} held, {} waiting", now.free, held, now.waiters.size());
}

Resource prepare(const Globals& globals, const SemaphoreArgs& args, const OpenOptions& how) {
  const std::shared_ptr<Store> store = open_store(globals, how);
  const auto semaphore = std::make_shared<Semaphore>(
      *store, args.run.name,
      SemaphoreOptions{.lease = args.run.lease, .label = args.run.label_or_command()});
  if (args.permits > 0) semaphore->ensure_permits(args.permits).get();
  return {.acquire = [store, semaphore, count = args.count](
                         std::chrono::milliseconds wait,
                         std::stop_token stop) -> std::optional<Holding> {
            auto held = semaphore->try_acquire(count, wait, std::move(stop)).get();
            if (!held) {
              store->run({"PING"}).get();  // the place in the queue is given up before that
              return std::nullopt;
            }
            return holding_of(std::move(*held), std::nullopt);
          },
          .obstacle = [store, semaphore] { return obstacle(*store, *semaphore); }};
}

int run(const Globals& globals, const SemaphoreArgs& args) {
  if (args.permits > 0 && args.count > args.permits)
    throw Error{Errc::bad_argument,
                fmt::format("--count {} is more than the --permits {} there are", args.count,
                            args.permits)};
  warn_if_in_memory(globals, "the semaphore");
  const Phrases phrases{.what = fmt::format("semaphore '{}'", args.run.name),
                        .busy = fmt::format("has not {} free", args.count)};
  return hold_and_run(globals, args.run, phrases,
                      [&](const OpenOptions& how) { return prepare(globals, args, how); });
}

}  // namespace

Command semaphore_command(const Globals& globals) {
  const auto args = std::make_shared<SemaphoreArgs>();
  Command command = command_that_holds(
      "semaphore", "Run at most so many commands at a time", args->run, "the semaphore",
      {{"--permits", "N", "How many there are; refused where another number is in force",
        into(args->permits, 1, Semaphore::most)},
       {"--count", "N", "How many this command takes", into(args->count, 1, Semaphore::most)}});
  command.details = "  sluice semaphore encoders --permits 4 -- ffmpeg in.mov out.mp4";
  command.action = [&globals, args] { return run(globals, *args); };
  return command;
}

}  // namespace sluice::cli
