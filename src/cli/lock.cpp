/// `sluice lock NAME -- CMD`: runs a command while the lock is held, as flock(1) does.
#include "sluice/lock.hpp"

#include <future>

#include "cli/command_line/exit_code.hpp"
#include "cli/hold_and_run.hpp"
#include "cli/lock_text.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice::cli {
namespace {

struct LockArgs {
  RunArgs run;
  bool fair = false;
  bool shared = false;
  bool exclusive = false;
  std::vector<std::string> quorum;  ///< URLs
};

/// A store that could not be opened, one of several of which a majority is enough: every call
/// throws what opening it threw.
class AbsentStore final : public Store {
 public:
  AbsentStore(std::string url, Error why) : url_(std::move(url)), why_(std::move(why)) {}

  using Store::run;
  Task<Value> run(Words, CallOptions) override { return refuse<Value>(why_); }
  Task<Value> run(const Script&, Words, Words, CallOptions) override { return refuse<Value>(why_); }
  Task<std::vector<Value>> run(Batch, CallOptions) override {
    return refuse<std::vector<Value>>(why_);
  }
  Task<Listener> listen(std::string, MessageHandler) override { return refuse<Listener>(why_); }
  Clock& clock() noexcept override { return system_clock(); }
  Driver* driver() noexcept override { return nullptr; }
  std::string describe() const override { return url_; }

 private:
  template <class Reply>
  static Task<Reply> refuse(Error why) {
    throw why;
    co_return Reply{};
  }

  const std::string url_;
  const Error why_;
};

using Stores = std::vector<std::shared_ptr<Store>>;

/// A waiter that gave up leaves the queue in the background: that is done when these are answered.
void leave_queues(const Stores& stores) {
  for (const auto& store : stores) {
    try {
      store->run({"PING"}).get();
    } catch (const Error&) {  // a node that is down: nothing is left to be done there
    }
  }
}

/// A kind of lock by its verb. Keeps store and lock alive.
template <class Lock, class Verb>
Resource resource_of(Stores stores, std::shared_ptr<Lock> lock, Verb verb) {
  return {.acquire = [stores, lock = std::move(lock), verb](
                         std::chrono::milliseconds wait,
                         std::stop_token stop) -> std::optional<Holding> {
            auto held = verb(*lock, wait, std::move(stop)).get();
            if (!held) {
              leave_queues(stores);
              return std::nullopt;
            }
            const std::uint64_t token = held->token().value;
            return holding_of(std::move(*held), token);
          },
          .obstacle = [] { return std::string{}; }};
}

constexpr auto alone = [](auto& lock, std::chrono::milliseconds wait, std::stop_token stop) {
  return lock.try_acquire(wait, std::move(stop));
};
constexpr auto shared = [](SharedMutex& lock, std::chrono::milliseconds wait,
                           std::stop_token stop) {
  return lock.try_acquire_shared(wait, std::move(stop));
};

template <class Lock, class Options, class Verb>
Resource in_one_store(const Globals& globals, const RunArgs& args, const OpenOptions& how,
                      Options options, Verb verb) {
  options.lease = args.lease;
  options.label = args.label_or_command();
  const std::shared_ptr<Store> store = open_store(globals, how);
  auto lock = std::make_shared<Lock>(*store, args.name, std::move(options));
  Resource resource = resource_of({store}, std::move(lock), verb);
  resource.obstacle = [store, name = args.name] {
    const auto seen = LockWatch{*store}.look(name).get();
    return seen ? holders_of(*seen) : std::string{};
  };
  return resource;
}

Resource in_many_stores(const LockArgs& args, OpenOptions how, bool first_try) {
  // All at once, and the other half of the time is for the lock: one silent node costs no more.
  if (how.open_timeout) *how.open_timeout /= 2;
  std::vector<std::future<std::unique_ptr<Store>>> opening;
  for (const auto& url : args.quorum)
    opening.push_back(std::async(std::launch::async, [&] { return open(url, how); }));
  Stores stores;
  std::vector<Store*> nodes;
  bool incomplete = false;
  for (auto& opened : opening) {
    try {
      stores.push_back(opened.get());
    } catch (const Error& failure) {
      if (failure.errc() == Errc::bad_argument) throw;
      if (first_try) complain("{}; going on without it", failure.message());
      incomplete = true;
      stores.push_back(
          std::make_shared<AbsentStore>(fmt::format("node {}", stores.size() + 1), failure));
    }
    nodes.push_back(stores.back().get());
  }
  auto lock = std::make_shared<QuorumLock>(
      std::move(nodes), args.run.name,
      QuorumLockOptions{.lease = args.run.lease, .label = args.run.label_or_command()});
  Resource resource = resource_of(std::move(stores), std::move(lock), alone);
  resource.incomplete = incomplete;
  return resource;
}

Resource prepare(const Globals& globals, const LockArgs& args, const OpenOptions& how,
                 bool first_try) {
  if (!args.quorum.empty()) return in_many_stores(args, how, first_try);
  if (args.fair) return in_one_store<FairMutex>(globals, args.run, how, FairMutexOptions{}, alone);
  if (args.shared)
    return in_one_store<SharedMutex>(globals, args.run, how, SharedMutexOptions{}, shared);
  if (args.exclusive)
    return in_one_store<SharedMutex>(globals, args.run, how, SharedMutexOptions{}, alone);
  return in_one_store<Mutex>(globals, args.run, how, MutexOptions{}, alone);
}

int lock(const Globals& globals, const LockArgs& args) {
  if (args.fair + args.shared + args.exclusive + !args.quorum.empty() > 1)
    throw Error{Errc::bad_argument, "give one of --fair, --shared, --exclusive and --quorum"};
  if (args.quorum.empty()) warn_if_in_memory(globals, "the lock");
  const Phrases phrases{.what = fmt::format("lock '{}'", args.run.name)};
  bool first_try = true;
  return hold_and_run(globals, args.run, phrases, [&](const OpenOptions& how) {
    return prepare(globals, args, how, std::exchange(first_try, false));
  });
}

/// URL,URL,URL
Target into_urls(std::vector<std::string>& urls) {
  const auto set = [&urls](const std::string& word) {
    urls.clear();
    for (std::size_t at = 0; at <= word.size();) {
      const auto end = std::min(word.find(',', at), word.size());
      urls.push_back(word.substr(at, end - at));
      at = end + 1;
    }
  };
  return {Target::Takes::one_word, set, {}};
}

}  // namespace

Command lock_command(const Globals& globals) {
  const auto args = std::make_shared<LockArgs>();
  Command command = command_that_holds(
      "lock", "Run a command while a lock is held, as flock(1) does", args->run, "the lock",
      {{"-s, --shared", "", "To read, beside others that read", into(args->shared)},
       {"-x, --exclusive", "", "To write, of the locks that others take with --shared",
        into(args->exclusive)},
       {"--fair", "", "First come, first served", into(args->fair)},
       {"--quorum", "URL,URL,URL", "Of a majority of these stores", into_urls(args->quorum)}});
  command.details =
      R"(The command finds its fencing token in $SLUICE_TOKEN. INT, TERM, HUP, QUIT, USR1
and USR2 are passed on to it. When the hold is lost, it gets TERM, and KILL after
--grace. When sluice itself is killed, even by KILL, the kernel kills the
command, but not the processes that the command has started.

  sluice lock deploy --wait 5s -- make release
  sluice lock -n -c 'make release && make publish' deploy)";
  command.action = [&globals, args] { return lock(globals, *args); };
  return command;
}

}  // namespace sluice::cli
