#include "engine/embedded/locked_engine.hpp"

#include <fmt/format.h>
#include <locale.h>

#include "engine/core/command.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/core/reply.hpp"
#include "engine/embedded/snapshot.hpp"
#include "engine/lua/scripts.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {
namespace {

// Expired keys are invisible at once; their memory is freed later. Each execution frees a few keys,
// a timer the rest; it runs neither often nor long.
constexpr std::size_t expired_at_once = 8;
constexpr std::size_t expired_by_timer = 2000;
constexpr std::int64_t expiry_grain_ms = 100;
constexpr std::int64_t expiry_backlog_ms = 10;
constexpr std::size_t keys_a_record = 1000;  // whose times of expiry are logged together

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

/// Of a command, with its subcommand, for a message.
std::string name_of(Words words) {
  const auto* const spec = resp::find_command(words[0]);
  const bool two = spec && spec->has(resp::flag_container) && words.size() > 1;
  return two ? fmt::format("'{} {}'", shown(words[0]), shown(words[1]))
             : fmt::format("'{}'", shown(words[0]));
}

/// As WaitingCall::type says.
std::string_view awaited_type(Words words) {
  const auto name = resp::find_command(words)->name;
  if (name == "xreadgroup") return {};
  return name.starts_with('x') ? "stream" : name.starts_with("bz") ? "zset" : "list";
}

/// While it lives, numbers have a point in this thread, as scripts and commands write them, though
/// the program's locale may have a comma.
class ClassicNumbers {
 public:
  ClassicNumbers() noexcept {
    static const locale_t classic = ::newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = ::uselocale(classic);
  }
  ~ClassicNumbers() { ::uselocale(before_); }
  ClassicNumbers(const ClassicNumbers&) = delete;
  ClassicNumbers& operator=(const ClassicNumbers&) = delete;

 private:
  locale_t before_;
};

}  // namespace

LockedEngine::LockedEngine(Clock& clock, const ScriptLimits& scripts)
    : clock_(clock), time_(clock) {
  ScriptLimits limits = scripts;
  if (!limits.clock) limits.clock = &clock;
  engine_.scripts().set_limits(limits);
  engine_.keeps_log = false;
  engine_.receivers = [this](std::string_view channel, bool sharded) {
    const auto here = sharded ? 0 : channels_->receivers(channel);
    return here + (audience_ ? audience_->receivers(channel, sharded) : 0);
  };
  engine_.channels = [this] { return channels_->names(); };
}

void LockedEngine::close() {
  std::vector<std::unique_ptr<ExpiryTimer>> timers;
  {
    const std::unique_lock lock{mutex_};
    expiry_planned_ms_ = Keyspace::never;  // a timer that runs now sets no other
    timers.swap(expiry_timers_);
    log_to(nullptr);
  }
  for (const auto& timer : timers) clock_.cancel(timer->id);
}

void LockedEngine::go_on_from(std::int64_t last_second) {
  const Section section{*this};
  const auto now = now_us();
  const auto step = now - last_second * 1'000'000;
  if (last_second > 0 && step < -1'000'000) keep_time_left(step, now);
}

void LockedEngine::log_to(LogCommitter* committer) {
  committer_ = committer;
  engine_.keeps_log = committer != nullptr;
  engine_.log_database = -1;
  if (committer) {
    engine_.before_write = [this](const resp::CommandSpec& spec, Words words) {
      return before_write(spec, words);
    };
  } else {
    engine_.before_write = nullptr;
  }
}

void LockedEngine::replay(Words words) {
  if (!engine_.offered(resp::find_command(words))) throw Error{Errc::bad_argument, name_of(words)};
  const ClassicNumbers numbers;
  Context context{engine_, session_, time_.now_us()};
  ValueReply reply;
  engine_.execute(context, words, reply);
  const Value value = reply.take();
  if (value.is_error() && value.as_text() == "ERR DB index is out of range")
    throw Error{Errc::bad_argument, fmt::format("{} of a database beyond 0 to {}", name_of(words),
                                                Engine::databases - 1)};
  if (value.is_error())
    throw Error{Errc::corrupt, fmt::format("'{}' is answered {}", words.front(), value.as_text())};
}

void LockedEngine::end_replay() {
  session_ = {};
  engine_.loading = false;
  time_.begin();
}

std::int64_t LockedEngine::now_us() {
  const auto now = time_.now_us();
  if (const auto step = time_.take_step_us(); step != 0) keep_time_left(step, now);
  return now;
}

/// The time has stepped, and each key ends when it would have ended. The log says so: its times are
/// the wall's.
void LockedEngine::keep_time_left(std::int64_t step_us, std::int64_t now_us) {
  const auto by_ms = step_us / 1000;
  Context context{engine_, session_, now_us};
  for (int database = 0; database < Engine::databases; ++database) {
    engine_.keyspace(database).move_expiries(by_ms, [&](const Entry& entry) {
      if (!committer_) return;
      engine_.log(
          context, database,
          std::array<std::string_view, 3>{"PEXPIREAT", entry.key(), IntegerText{entry.expiry_ms}});
      if (context.effects().size() < keys_a_record) return;
      committer_->append(context.effects(), now_us);
      context.effects().clear();
    });
  }
  if (committer_) committer_->append(context.effects(), now_us);
  engine_.find_soonest_expiry();
  if (expiry_planned_ms_ > 0) expiry_planned_ms_ += by_ms;
  for (const auto& timer : expiry_timers_) timer->at_ms += by_ms;
  for (const auto& timer : expiry_timers_) timer->at_ms += by_ms;
}

std::optional<std::string> LockedEngine::before_write(const resp::CommandSpec& spec, Words words) {
  if (!refusal_.empty()) return refusal_;
  if (snapshot_) snapshot_->before_write(spec, words);
  return std::nullopt;
}

// --- one execution ---

template <class Run>
Executed LockedEngine::Section::run(Session& session, Reply& reply, Run&& run) {
  const ClassicNumbers numbers;
  const auto now = locked_.now_us();
  locked_.expire(now, expired_at_once);
  if (locked_.committer_ && locked_.committer_->has_failed() != !locked_.refusal_.empty())
    locked_.note_failure();
  const int database = locked_.engine_.log_database;
  Context context{locked_.engine_, session, now};
  run(context, reply);
  Executed executed;
  if (auto& blocks = context.blocks(); !blocks.empty()) executed.block = std::move(blocks.front());
  locked_.finish(context, executed, database);
  return executed;
}

Executed LockedEngine::Section::run_command(Session& session, Words words,
                                            const resp::CommandSpec* spec, Reply& reply) {
  return run(session, reply, [&](Context& context, Reply& to) {
    auto& engine = locked_.engine_;
    const auto* const command = engine.offered(spec);
    if (command && command->handler && spec->arity_fits(words.size()))
      engine.run(context, *command, words, to);
    else
      engine.execute(context, words, to);
  });
}

/// The reply as a Value.
template <class Run>
ExecutionResult to_value(const Session& session, Run&& run) {
  ValueReply reply{session.protocol};
  ExecutionResult result{run(reply), {}};
  if (!result.block) result.reply = reply.take();
  return result;
}

ExecutionResult LockedEngine::Section::execute(Words words, const resp::CommandSpec* spec) {
  Session session;
  auto result =
      to_value(session, [&](Reply& reply) { return run_command(session, words, spec, reply); });
  serve_waiting();
  return result;
}

ExecutionResult LockedEngine::Section::execute(const Script& script, Words keys, Words args) {
  Session session;
  auto result = to_value(session, [&](Reply& reply) {
    return run(session, reply, [&](Context& context, Reply& to) {
      locked_.engine_.scripts().run(context, script, {keys, args}, to);
    });
  });
  serve_waiting();
  return result;
}

Executed LockedEngine::Section::execute(Session& session, Words words,
                                        const resp::CommandSpec* spec, Reply& reply) {
  auto executed = run_command(session, words, spec, reply);
  if (!locked_.signalled_.empty()) serve_waiting();
  return executed;
}

Executed LockedEngine::Section::execute_together(Session& session, Reply& reply,
                                                 const std::function<void(Context&)>& commands) {
  auto executed = run(session, reply, [&](Context& context, Reply&) {
    context.begin_transaction();
    commands(context);
  });
  serve_waiting();
  return executed;
}

void LockedEngine::finish(Context& context, Executed& executed, int database) {
  engine_.changes_made += context.changes();
  // In memory nothing is logged. What was published was heard.
  executed.wrote =
      context.changes() > 0 || !context.effects().empty() || !context.published().empty();
  // A read waits, too: what it shows may be lost until it is committed, or is lost already.
  if (committer_) executed.position = committer_->append(context.effects(), context.now_us());
  if (audience_)
    for (const auto& message : context.published()) audience_->publish(message);
  channels_->post(context.published());
  tell(context, database, &context.session());
  if (!waiting_.empty()) signal_waiting(context);
  plan_expiry(context.now_us());
}

void LockedEngine::signal_waiting(Context& context) {
  std::ranges::move(context.signals_all() ? waiting_.keys() : std::move(context.signalled()),
                    std::back_inserter(signalled_));
  if (waiting_.streams().empty()) return;
  bool lost = false;
  for (int database = 0; database < Engine::databases; ++database)
    lost |= engine_.keyspace(database).take_lost_stream();
  if (!lost) return;
  for (const auto& key : waiting_.streams()) {
    const Entry* const entry = entry_at(key);
    if (!entry || type_name(entry->object) != "stream") signalled_.push_back(key);
  }
}

void LockedEngine::tell(Context& context, int database, const Session* by) {
  trackers_.post(context.effects());
  if (audience_ && !context.effects().empty()) audience_->changed(context.effects(), database, by);
}

void LockedEngine::note_failure() {
  const auto failure = committer_->failure();
  refusal_ = failure ? "MISCONF " + failure->message() : "";
}

// --- calls that wait ---

ExecutionResult LockedEngine::Section::run_waiting(const WaitingCall& call) {
  Session session = call.session;
  return to_value(session, [&](Reply& reply) {
    return run_command(session, views(call.words), nullptr, reply);
  });
}

void LockedEngine::Section::execute_or_wait(const WaitingCalls::Call& call) {
  auto result = run_waiting(*call);
  if (result.block)
    wait(call, *std::move(result.block));
  else
    serve(call, std::move(result));
  serve_waiting();
}

void LockedEngine::Section::wait(const WaitingCalls::Call& call, Block&& block) {
  call->keys = std::move(block.keys);
  call->timeout_ms = block.timeout_ms;
  if (!block.words.empty()) call->words = std::move(block.words);
  call->type = awaited_type(views(call->words));
  locked_.waiting_.add(call);
}

const Entry* LockedEngine::entry_at(const KeyOfDatabase& key) {
  constexpr auto before_all_time = std::numeric_limits<std::int64_t>::min();
  return engine_.keyspace(key.database).find_entry(key.key, before_all_time);
}

bool LockedEngine::has_key(const KeyOfDatabase& key) {
  const Entry* const entry = entry_at(key);
  return entry && (entry->expiry_ms == Keyspace::never || entry->expiry_ms >= now_us() / 1000);
}

void LockedEngine::Section::serve(const WaitingCalls::Call& call, ExecutionResult&& result) {
  call->reply = std::move(result.reply);
  call->position = result.position;
  call->wrote = result.wrote;
  served_.push_back(call);
}

bool LockedEngine::Section::stop_waiting(WaitingCall& call) {
  return locked_.waiting_.remove(call);
}

void LockedEngine::Section::serve_waiting() {
  for (std::size_t i = 0; i < locked_.signalled_.size(); ++i) {  // serving may signal more (BLMOVE)
    const auto key = locked_.signalled_[i];
    for (const auto& call : locked_.waiting_.of(key)) {
      if (!call->is_waiting) continue;
      const Entry* const entry = locked_.entry_at(key);
      if (!call->type.empty() && !(entry && type_name(entry->object) == call->type)) continue;
      auto result = run_waiting(*call);
      if (result.block) continue;
      locked_.waiting_.remove(*call);
      serve(call, std::move(result));
    }
  }
  locked_.signalled_.clear();
}

LockedEngine::Section::~Section() {
  lock_.unlock();
  for (const auto& call : served_) call->served();
  locked_.channels_->deliver();
  locked_.trackers_.deliver();
}

// --- expiry ---

void LockedEngine::expire(std::int64_t now_us, std::size_t most) {
  engine_.keeps_log = committer_ || trackers_.any() || (audience_ && audience_->wants_effects());
  if (engine_.soonest_expiry_ms() >= now_us / 1000) return;
  const int database = engine_.log_database;
  Context context{engine_, session_, now_us};
  engine_.expire_some(context, most);
  engine_.find_soonest_expiry();
  if (committer_) committer_->append(context.effects(), now_us);
  if (audience_)
    for (const auto& message : context.published()) audience_->publish(message);
  channels_->post(context.published());
  tell(context, database, nullptr);
  if (!waiting_.empty()) signal_waiting(context);
}

void LockedEngine::plan_expiry(std::int64_t now_us) {
  const auto first = engine_.soonest_expiry_ms();
  if (first == Engine::no_expiry) return;
  const auto now = now_us / 1000;
  const auto at = std::max(first + 1, now + (first < now ? expiry_backlog_ms : expiry_grain_ms));
  if (expiry_planned_ms_ != 0 && expiry_planned_ms_ <= at + expiry_grain_ms) return;
  expiry_timers_.push_back(std::make_unique<ExpiryTimer>(at));
  auto& timer = *expiry_timers_.back();
  try {
    timer.id = clock_.after(std::chrono::milliseconds{at - now},
                            [this, &timer] { expire_in_time(timer); });
  } catch (...) {
    expiry_timers_.pop_back();
    throw;
  }
  expiry_planned_ms_ = at;
}

void LockedEngine::expire_in_time(const ExpiryTimer& own) {
  Section section{*this};
  if (expiry_planned_ms_ == Keyspace::never) return;  // closing
  std::erase_if(expiry_timers_, [&](const auto& timer) { return timer.get() == &own; });
  expiry_planned_ms_ = 0;
  for (const auto& timer : expiry_timers_)
    if (expiry_planned_ms_ == 0 || timer->at_ms < expiry_planned_ms_)
      expiry_planned_ms_ = timer->at_ms;
  const auto now = now_us();
  expire(now, expired_by_timer);
  if (!signalled_.empty()) section.serve_waiting();
  plan_expiry(now);
}

}  // namespace sluice::engine
