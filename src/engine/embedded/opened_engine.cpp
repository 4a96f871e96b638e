#include "engine/embedded/opened_engine.hpp"

#include <fmt/format.h>

#include <system_error>

namespace sluice::engine {
namespace {

std::string_view name_of(Fsync fsync) {
  switch (fsync) {
    case Fsync::always: return "always";
    case Fsync::everysec: return "everysec";
    case Fsync::never: return "no";
  }
  return "no";
}

/// What CONFIG GET answers and CONFIG SET cannot change.
void settle_config(Engine& engine, const EmbeddedOptions& options) {
  engine.config = {{"appendonly", options.path.empty() ? "no" : "yes"},
                   {"appendfsync", std::string{name_of(options.fsync)}},
                   {"save", ""},
                   {"maxmemory", "0"},
                   {"maxmemory-policy", "noeviction"}};
  engine.configure = [fixed = engine.config](std::string_view name,
                                             std::string_view value) -> std::string {
    const auto found = fixed.find(name);
    if (found == fixed.end() || found->second == value) return {};
    return "it is settled when the embedded store is opened";
  };
}

}  // namespace

OpenedEngine::Persistence::Persistence(LockedEngine& engine, const EmbeddedOptions& options,
                                       std::unique_ptr<Folder> folder)
    : log(std::move(folder), [&engine](Words words) { engine.replay(words); }),
      committer(log, options.fsync, engine.clock()),
      rewriter(engine, log, committer) {}

OpenedEngine::OpenedEngine(const EmbeddedOptions& options, std::unique_ptr<FolderLock> lock,
                           std::unique_ptr<Folder> folder)
    : options_(options),
      lock_(std::move(lock)),
      engine_(options.clock ? *options.clock : system_clock(), options.scripts) {
  settle_config(engine_.engine(), options_);
  if (!folder) return;
  engine_.begin_replay();
  persistence_ = std::make_unique<Persistence>(engine_, options_, std::move(folder));
  engine_.end_replay();
  engine_.log_to(&persistence_->committer);
  engine_.engine().start_rewrite = [this] { persistence_->rewriter.start(); };
  report_ = persistence_->log.report();
  engine_.go_on_from(report_.last_second);
  if (lock_) lock_->keep();
}

std::unique_ptr<OpenedEngine> OpenedEngine::open(const EmbeddedOptions& options) {
  if (options.path.empty()) return std::make_unique<OpenedEngine>(options, nullptr, nullptr);
  try {
    open_folder(options.path);
    auto lock = std::make_unique<FolderLock>(options.path);
    if (const auto server = server_in(options.path))
      throw Error{Errc::in_use,
                  fmt::format("a redis-server, process {}, has files of {} open; end it first, or "
                              "what one of them acknowledges is lost when the other rewrites",
                              server, options.path)};
    auto folder = open_log_folder(options.path, lock->is_new());
    return std::make_unique<OpenedEngine>(options, std::move(lock), std::move(folder));
  } catch (const std::system_error& error) {
    if (dynamic_cast<const Error*>(&error)) throw;
    throw error_of_disk(error);
  }
}

void OpenedEngine::look_after_log(bool wrote) {
  if (!persistence_) return;
  auto& rewriter = persistence_->rewriter;
  if (persistence_->committer.has_failed()) return rewriter.start_to_mend();
  if (wrote && options_.rewrite_growth_percent > 0)
    rewriter.start_when_due(options_.rewrite_above_bytes, options_.rewrite_growth_percent);
}

void OpenedEngine::close() {
  if (persistence_) {
    persistence_->rewriter.stop();
    persistence_->committer.stop();  // coroutines may give something back: it is logged
  }
  engine_.close();  // before its log is destroyed
}

}  // namespace sluice::engine
