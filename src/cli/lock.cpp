/// `sluice lock NAME -- CMD`: runs a command while the lock is held, as flock(1) does.
#include "sluice/lock.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/absent_store.hpp"
#include "cli/hold_and_run.hpp"
#include "sluice/open.hpp"

namespace sluice::cli {
namespace {

struct LockArgs {
  RunArgs run;
  bool fair = false;
  bool shared = false;
  bool exclusive = false;
  std::vector<std::string> quorum;
};

/// Whoever gave up leaves the queue in the background: that has been done when these are answered.
void leave_queues(const std::vector<std::shared_ptr<Store>>& stores) {
  for (const auto& store : stores) {
    try {
      store->run({"PING"}).get();
    } catch (const Error&) {  // a node that is down: nothing is left to be done there
    }
  }
}

/// A kind of lock by its verb, which keeps store and lock alive.
template <class Lock, class Verb>
Acquire acquire_by(std::vector<std::shared_ptr<Store>> stores, std::shared_ptr<Lock> lock,
                   Verb verb) {
  return [stores = std::move(stores), lock = std::move(lock), verb](
             std::chrono::milliseconds wait, std::stop_token stop) -> std::optional<Holding> {
    auto held = verb(*lock, wait, std::move(stop)).get();
    if (!held) {
      leave_queues(stores);
      return std::nullopt;
    }
    const std::uint64_t token = held->token().value;
    return holding_of(std::move(*held), token);
  };
}

constexpr auto alone = [](auto& lock, std::chrono::milliseconds wait, std::stop_token stop) {
  return lock.try_acquire(wait, std::move(stop));
};
constexpr auto with_others = [](SharedMutex& lock, std::chrono::milliseconds wait,
                                std::stop_token stop) {
  return lock.try_acquire_shared(wait, std::move(stop));
};

template <class Lock, class Options, class Verb>
Acquire of_one_store(const Globals& globals, const RunArgs& args, Options options, Verb verb) {
  options.lease = parse_duration(args.lease);
  options.label = args.label_or_command();
  std::shared_ptr<Store> store = open_store(globals);
  auto lock = std::make_shared<Lock>(*store, args.name, std::move(options));
  return acquire_by({std::move(store)}, std::move(lock), verb);
}

/// A node that is down is one that says no; a mistake in its URL is a mistake.
std::shared_ptr<Store> open_node(const std::string& url, std::size_t number) {
  try {
    return open(url);
  } catch (const Error& failure) {
    if (failure.errc() == Errc::bad_argument) throw;
    fmt::print(stderr, "sluice: {}; going on without it\n", failure.message());
    return std::make_shared<AbsentStore>(fmt::format("node {}", number), failure);
  }
}

Acquire of_many_stores(const LockArgs& args) {
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<Store*> nodes;
  for (const auto& url : args.quorum) {
    stores.push_back(open_node(url, stores.size() + 1));
    nodes.push_back(stores.back().get());
  }
  auto lock =
      std::make_shared<QuorumLock>(std::move(nodes), args.run.name,
                                   QuorumLockOptions{.lease = parse_duration(args.run.lease),
                                                     .label = args.run.label_or_command()});
  return acquire_by(std::move(stores), std::move(lock), alone);
}

Acquire prepare(const Globals& globals, const LockArgs& args) {
  if (!args.quorum.empty()) return of_many_stores(args);
  if (args.fair) return of_one_store<FairMutex>(globals, args.run, FairMutexOptions{}, alone);
  if (args.shared)
    return of_one_store<SharedMutex>(globals, args.run, SharedMutexOptions{}, with_others);
  if (args.exclusive)
    return of_one_store<SharedMutex>(globals, args.run, SharedMutexOptions{}, alone);
  return of_one_store<Mutex>(globals, args.run, MutexOptions{}, alone);
}

}  // namespace

void add_lock_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand(
      "lock", "Run a command while a lock is held; it finds the fencing token in $SLUICE_TOKEN");
  const auto args = std::make_shared<LockArgs>();
  add_run_options(*command, args->run, "the lock");
  add_hold_options(*command, args->run);
  auto* const kinds = command->add_option_group("kind", "What kind of lock; default: a mutex");
  kinds->add_flag("--fair", args->fair, "First come, first served");
  kinds->add_flag("-s,--shared", args->shared, "To read, beside others that read");
  kinds->add_flag("-x,--exclusive", args->exclusive,
                  "To write, of the locks that others take with --shared");
  kinds->add_option("--quorum", args->quorum, "Of a majority of these stores: URL,URL,URL")
      ->delimiter(',')
      ->allow_extra_args(false);
  kinds->require_option(0, 1);
  command->callback([&globals, &action, args] {
    action = [&globals, args] {
      const Words words{.what = fmt::format("lock '{}'", args->run.name)};
      return hold_and_run(globals, args->run, words, [&] { return prepare(globals, *args); });
    };
  });
}

}  // namespace sluice::cli
