#include "engine/embedded_store.hpp"

#include <fmt/format.h>

#include "base/event.hpp"
#include "base/process.hpp"
#include "base/timers.hpp"
#include "engine/types/text.hpp"
#include "resp/command_table.hpp"
#include "store/batch_rules.hpp"
#include "store/callbacks.hpp"
#include "store/reply_error.hpp"

namespace sluice::engine {
namespace {

/// A batch is not atomic: other callers get the engine after so many of its items.
constexpr std::size_t items_a_section = 64;

using Section = LockedEngine::Section;

/// What has to be on disk before a reply is given. A receipt that is dropped unawaited lets the
/// background thread commit.
class Receipt {
 public:
  Receipt(LogCommitter* committer, std::uint64_t position, bool wrote) noexcept
      : committer_(committer),
        position_(position),
        effect_(wrote ? Effect::unknown : Effect::none) {}
  Receipt(Receipt&& other) noexcept
      : committer_(std::exchange(other.committer_, nullptr)),
        position_(other.position_),
        effect_(other.effect_) {}
  Receipt& operator=(Receipt&&) = delete;
  ~Receipt() {
    if (committer_ && !is_committed()) committer_->commit_soon();
  }

  bool is_committed() const noexcept { return !committer_ || committer_->is_committed(position_); }

  // `co_await` it: goes on when it is committed, throws when it cannot be.
  bool await_ready() const noexcept { return is_committed(); }
  bool await_suspend(std::coroutine_handle<> coroutine) {
    wait_.emplace(*std::exchange(committer_, nullptr), position_, effect_);
    return wait_->await_suspend(coroutine);
  }
  void await_resume() const {
    if (wait_) wait_->await_resume();
  }

 private:
  LogCommitter* committer_;
  std::uint64_t position_;
  Effect effect_;
  std::optional<LogCommitter::Wait> wait_;
};

Task<Value> when_committed(Value reply, Receipt receipt, std::optional<Error> error) {
  co_await receipt;
  if (error) throw *std::move(error);
  co_return reply;
}

template <class T>
Task<T> failed(Error error) {
  throw error;
  co_return T{};
}

/// `spec` rules the words; null: nothing is known of them.
std::optional<Error> refusal_of(Words command, const resp::CommandSpec* spec) {
  if (command.empty()) return Error{Errc::bad_argument, "a command without words"};
  if (!spec || !spec->has(resp::flag_stateful)) return std::nullopt;
  return Error{
      Errc::bad_argument,
      fmt::format("{} changes the state of a connection, and this Store is shared by all "
                  "its callers; use a script for several commands at once, and listen() to "
                  "subscribe",
                  command.front())};
}

Executor executor_of(const EmbeddedOptions& options) {
  const bool has_own_clock = options.clock && options.clock != &system_clock();
  return options.executor || !has_own_clock ? options.executor : Callbacks::run_at_once;
}

/// All that a Store of this process has.
struct State {
  explicit State(std::unique_ptr<OpenedEngine> one)
      : opened(std::move(one)),
        engine(opened->engine()),
        callbacks(std::make_shared<Callbacks>(executor_of(opened->options()))) {}
  ~State() {
    await_running_timer();
    callbacks->end();
    opened->close();
  }

  const std::unique_ptr<OpenedEngine> opened;
  LockedEngine& engine;
  const std::shared_ptr<Callbacks> callbacks;
};

/// The Store of the process that has opened it. A child of fork() has a copy: of locks that threads
/// had which it has not, and of a log and a folder that are its parent's. It touches none of them.
class ProcessStore final : public EmbeddedStore {
 public:
  explicit ProcessStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
  ~ProcessStore() override {
    if (!is_ours()) static_cast<void>(state_.release());
  }

  Task<Value> run(Words command, CallOptions) override;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions) override;
  Task<std::vector<Value>> run(Batch batch, CallOptions) override;
  Task<Listener> subscribe(std::string channel, MessageHandler handler) override {
    if (!is_ours()) return closed<Listener>();
    return Task<Listener>::ready(
        state_->engine.channels().listen(std::move(channel), std::move(handler)));
  }
  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    if (!is_ours()) return closed<Listener>();
    return state_->callbacks->listen(std::move(handler),
                                     [this, channel = std::move(channel)](MessageHandler deliver) {
                                       return subscribe(channel, std::move(deliver));
                                     });
  }
  Listener track(std::string prefix, MessageHandler handler) override {
    if (!is_ours()) throw closed_by_fork();
    return state_->engine.trackers().track(std::move(prefix), std::move(handler));
  }
  void call_back(std::function<void()> callback) noexcept override {
    if (is_ours()) state_->callbacks->call(std::move(callback));
  }

  Clock& clock() noexcept override { return state_->engine.clock(); }
  Driver* driver() noexcept override { return committer(); }
  std::string describe() const override { return "embedded:" + state_->opened->options().path; }
  const OpenReport& open_report() const noexcept override { return state_->opened->report(); }
  void rewrite() override;

 private:
  bool is_ours() const noexcept { return forks_ == fork_count(); }
  template <class T>
  static Task<T> closed() {
    return failed<T>(closed_by_fork());
  }
  LogCommitter* committer() noexcept { return state_->opened->committer(); }
  Receipt receipt_of(const ExecutionResult& result) noexcept {
    return {committer(), result.position, result.wrote};
  }

  Task<Value> reply(ExecutionResult&& result, std::optional<Error> error);
  Task<Value> wait_for_keys(std::vector<std::string> words);
  /// Gives the receipt of what was executed.
  Receipt execute_items(const Batch& batch, std::vector<Value>& values);
  ExecutionResult execute_item(Section& section, const Batch::Item& item);
  static Task<std::vector<Value>> finish_batch(std::vector<Value> values, Receipt receipt);
  void look_after_log(bool wrote) { state_->opened->look_after_log(wrote); }

  std::unique_ptr<State> state_;
  const unsigned forks_ = fork_count();
};

// --- one command, one script ---

Task<Value> ProcessStore::run(Words command, CallOptions) {
  if (!is_ours()) return closed<Value>();
  const auto* const spec = resp::find_command(command);
  if (auto refused = refusal_of(command, spec)) return failed<Value>(*std::move(refused));
  std::optional<ExecutionResult> result;
  {
    Section section{state_->engine};
    result = section.execute(command, spec);
  }
  if (spec && spec->name == "bgrewriteaof") result->position = 0;  // it mends a log that has failed
  if (result->block) return wait_for_keys({command.begin(), command.end()});
  std::optional<Error> error;
  if (result->reply.is_error())
    error = error_of_command(result->reply.as_text(), command,
                             result->wrote ? Effect::unknown : Effect::none);
  return reply(*std::move(result), std::move(error));
}

Task<Value> ProcessStore::run(const Script& script, Words keys, Words args, CallOptions) {
  if (!is_ours()) return closed<Value>();
  std::optional<ExecutionResult> result;
  {
    Section section{state_->engine};
    result = section.execute(script, keys, args);
  }
  std::optional<Error> error;
  if (result->reply.is_error())
    error = error_of_script(result->reply.as_text(), script, keys,
                            result->wrote ? Effect::unknown : Effect::none);
  return reply(*std::move(result), std::move(error));
}

Task<Value> ProcessStore::reply(ExecutionResult&& result, std::optional<Error> error) {
  look_after_log(result.wrote);
  auto receipt = receipt_of(result);
  if (receipt.is_committed() && !error) return Task<Value>::ready(std::move(result.reply));
  return when_committed(std::move(result.reply), std::move(receipt), std::move(error));
}

/// Ends a wait: with its timeout, or when the coroutine goes on or is destroyed.
class WaitGuard {
 public:
  WaitGuard(LockedEngine& engine, WaitingCalls::Call call)
      : engine_(engine), call_(std::move(call)) {
    if (call_->timeout_ms > 0)
      timer_ = engine_.clock().after(std::chrono::milliseconds{call_->timeout_ms},
                                     [&engine, call = call_] {
                                       if (Section{engine}.stop_waiting(*call))
                                         call->done.complete();  // its reply is null
                                     });
  }
  ~WaitGuard() {
    if (timer_) engine_.clock().cancel(*timer_);
    Section{engine_}.stop_waiting(*call_);
  }
  WaitGuard(const WaitGuard&) = delete;
  WaitGuard& operator=(const WaitGuard&) = delete;

 private:
  LockedEngine& engine_;
  WaitingCalls::Call call_;
  std::optional<Clock::TimerId> timer_;
};

Task<Value> ProcessStore::wait_for_keys(std::vector<std::string> words) {
  const auto call = std::make_shared<WaitingCall>(std::move(words), driver());
  Section{state_->engine}.execute_or_wait(call);
  {
    const WaitGuard guard{state_->engine, call};
    co_await call->done;
  }
  look_after_log(call->wrote);
  Receipt receipt{committer(), call->position, call->wrote};
  co_await receipt;
  if (call->reply.is_error()) {
    const std::vector<std::string_view> command{call->words.begin(), call->words.end()};
    throw error_of_command(call->reply.as_text(), command,
                           call->wrote ? Effect::unknown : Effect::none);
  }
  co_return std::move(call->reply);
}

// --- batches ---

ExecutionResult ProcessStore::execute_item(Section& section, const Batch::Item& item) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (item.script) {
    const auto all = Words{words};
    return section.execute(*item.script, all.first(item.key_count), all.subspan(item.key_count));
  }
  return section.execute(words);
}

Receipt ProcessStore::execute_items(const Batch& batch, std::vector<Value>& values) {
  std::uint64_t position = 0;
  bool wrote = false;
  while (values.size() < batch.size()) {
    Section section{state_->engine};
    for (std::size_t i = 0; i < items_a_section && values.size() < batch.size(); ++i) {
      auto result = execute_item(section, batch.items()[values.size()]);
      position = result.position;
      wrote = wrote || result.wrote;
      values.push_back(std::move(result.reply));
    }
  }
  look_after_log(wrote);
  return {committer(), position, wrote};
}

Task<std::vector<Value>> ProcessStore::run(Batch batch, CallOptions) {
  if (!is_ours()) return closed<std::vector<Value>>();
  for (const auto& item : batch.items()) {
    const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
    if (item.script) continue;
    const auto* const spec = resp::find_command(words);
    auto refused = refusal_of(words, spec);
    const bool blocks = spec && spec->has(resp::flag_blocking);
    if (!refused && blocks && resp::waiting_time(*spec, words))
      refused = blocks_its_batch(words[0]);
    if (refused) return failed<std::vector<Value>>(*std::move(refused));
  }
  std::vector<Value> values;
  values.reserve(batch.size());
  auto receipt = execute_items(batch, values);
  if (receipt.is_committed()) return Task<std::vector<Value>>::ready(std::move(values));
  return finish_batch(std::move(values), std::move(receipt));
}

Task<std::vector<Value>> ProcessStore::finish_batch(std::vector<Value> values, Receipt receipt) {
  co_await receipt;
  co_return values;
}

void ProcessStore::rewrite() {
  if (!is_ours()) throw closed_by_fork();
  NoBlocking::check("rewriting the file of a Store");
  auto* const rewriter = state_->opened->rewriter();
  if (!rewriter) throw Error{Errc::bad_argument, "a Store in memory has no file to rewrite"};
  rewriter->start();
  rewriter->wait();
}

}  // namespace

std::unique_ptr<EmbeddedStore> open_embedded(EmbeddedOptions options,
                                             std::unique_ptr<Folder> folder) {
  return std::make_unique<ProcessStore>(
      std::make_unique<State>(std::make_unique<OpenedEngine>(options, nullptr, std::move(folder))));
}

std::unique_ptr<EmbeddedStore> open_embedded(EmbeddedOptions options) {
  return std::make_unique<ProcessStore>(std::make_unique<State>(OpenedEngine::open(options)));
}

}  // namespace sluice::engine
