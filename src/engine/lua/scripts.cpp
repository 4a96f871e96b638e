#include "engine/lua/scripts.hpp"

#include <fmt/format.h>

#include "base/sha1.hpp"
#include "engine/core/engine.hpp"
#include "engine/lua/reply.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {
namespace {

constexpr std::string_view no_script = "NOSCRIPT No matching script. Please use EVAL.";
constexpr std::string_view writes_in_read_only =
    "ERR Can not execute a script with write flag using *_ro command.";
constexpr std::size_t sha1_size = 40;

/// The first line of a script: "#!lua flags=no-writes,allow-oom".
struct ScriptHeader {
  bool present = false;
  bool no_writes = false;
  std::size_t size =
      0;  ///< the bytes before the line end, which stays so that lines keep their numbers
};

/// Cuts the text before the next `separator` off `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const auto at = std::min(rest.find(separator), rest.size());
  const auto piece = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return piece;
}

/// An error text where the line begins with "#!" and is not understood.
std::expected<ScriptHeader, std::string> read_script_header(std::string_view script) {
  ScriptHeader header;
  if (!script.starts_with("#!")) return header;
  const auto end = script.find('\n');
  if (end == std::string_view::npos) return std::unexpected("ERR Invalid script shebang");
  header.present = true;
  header.size = end;

  auto line = script.substr(0, end);
  if (const auto engine = cut(line, ' '); engine != "#!lua")
    return std::unexpected(fmt::format("ERR Unexpected engine in script shebang: {}", engine));
  while (!line.empty()) {
    auto option = cut(line, ' ');
    if (option.empty()) continue;
    if (!option.starts_with("flags="))
      return std::unexpected(fmt::format("ERR Unknown lua shebang option: {}", option));
    option.remove_prefix(6);
    while (!option.empty()) {
      const auto flag = cut(option, ',');
      if (std::ranges::find(script_flags, flag) == script_flags.end())
        return std::unexpected(fmt::format("ERR Unexpected flag in script shebang: {}", flag));
      if (flag == "no-writes") header.no_writes = true;
    }
  }
  return header;
}

/// A SHA-1 as the cache writes it.
class Sha1Text {
 public:
  explicit Sha1Text(std::string_view sha1) noexcept : size_(std::min(sha1.size(), sha1_size + 1)) {
    std::ranges::transform(sha1.substr(0, size_), text_.begin(), resp::lower);
  }
  std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, sha1_size + 1> text_;
  std::size_t size_;
};

/// What a script changes in the context for as long as it runs.
class InScript {
 public:
  InScript(Context& context, ScriptRun& run, bool read_only)
      : context_(context), run_(run), session_(context.session()), outer_(context.allowance()) {
    run_.context = &context;
    run_.read_only = read_only;
    run_.protocol = 2;
    context.session().protocol = 2;
    context.set_allowance(&run);
  }
  ~InScript() {
    run_.context = nullptr;
    context_.session() = session_;  // SELECT inside a script holds until its end
    context_.set_allowance(outer_);
  }
  InScript(const InScript&) = delete;
  InScript& operator=(const InScript&) = delete;

 private:
  Context& context_;
  ScriptRun& run_;
  Session session_;
  Allowance* outer_;
};

/// What is written while it lives is undone at its end, unless it is settled.
class Undoable {
 public:
  explicit Undoable(Context& context) : context_(context), mark_(context.mark()) {
    context.engine().begin_undo();
  }
  ~Undoable() {
    if (settled_) return;
    context_.engine().take_back();
    context_.return_to(mark_);
  }
  Undoable(const Undoable&) = delete;
  Undoable& operator=(const Undoable&) = delete;

  void settle() noexcept {
    settled_ = true;
    context_.engine().end_undo();
  }

 private:
  Context& context_;
  const Context::Mark mark_;
  bool settled_ = false;
};

}  // namespace

std::size_t ScriptRunner::Sha1Hash::operator()(std::string_view sha1) const noexcept {
  // Any part of a SHA-1 is a good hash, but hex digits leave some bits the same.
  std::uint64_t first = 0;
  std::memcpy(&first, sha1.data(), std::min(sha1.size(), sizeof first));
  return static_cast<std::size_t>(first * 0x9E3779B97F4A7C15ULL);
}

ScriptRunner::ScriptRunner(Engine& engine) {
  run_.engine = &engine;
  flush();
}

ScriptRunner::~ScriptRunner() = default;

void ScriptRunner::set_limits(const ScriptLimits& limits) {
  run_.limits = limits;
  flush();
}

void ScriptRunner::flush() {
  scripts_.clear();
  recent_.clear();
  lua_ = std::make_unique<LuaState>(run_);
}

bool ScriptRunner::knows(std::string_view sha1) const {
  return scripts_.contains(Sha1Text{sha1}.view());
}

std::expected<ScriptRunner::Scripts::iterator, std::string> ScriptRunner::learn(
    std::string_view sha1, std::string_view text, bool keep) {
  const auto header = read_script_header(text);
  if (!header) return std::unexpected(header.error());
  auto script = lua_->compile(text.substr(header->size));
  if (!script) return std::unexpected(script.error());
  Compiled compiled{*std::move(script), header->present, header->no_writes, keep, {}};
  if (!keep) {
    evict();
    compiled.use = recent_.emplace(recent_.begin(), sha1);
  }
  return scripts_.emplace(sha1, std::move(compiled)).first;
}

void ScriptRunner::evict() {
  while (!recent_.empty() && recent_.size() >= run_.limits.cached) {
    const auto oldest = scripts_.find(recent_.back());
    lua_->forget(oldest->second.script);
    scripts_.erase(oldest);
    recent_.pop_back();
  }
}

std::expected<std::string, std::string> ScriptRunner::load(std::string_view text) {
  auto sha1 = sha1_hex(text);
  if (const auto known = scripts_.find(sha1); known != scripts_.end()) {
    if (!known->second.kept) recent_.erase(known->second.use);
    known->second.kept = true;
    return sha1;
  }
  if (const auto learned = learn(sha1, text, true); !learned)
    return std::unexpected(learned.error());
  return sha1;
}

void ScriptRunner::run(Context& context, const Script& script, const Call& call, Reply& reply) {
  run(context, script, true, call, reply);
}

void ScriptRunner::eval(Context& context, std::string_view text, const Call& call, Reply& reply) {
  const auto sha1 = sha1_hex(text);
  run(context, Script{"", text, sha1}, false, call, reply);
}

void ScriptRunner::run(Context& context, const Script& script, bool keep, const Call& call,
                       Reply& reply) {
  auto known = scripts_.find(script.sha1);
  if (known == scripts_.end()) {
    const auto learned = learn(script.sha1, script.text, keep);
    if (!learned) return reply.error(one_line(learned.error()));
    known = *learned;
  }
  execute(context, known, call, reply);
}

void ScriptRunner::evalsha(Context& context, std::string_view sha1, const Call& call,
                           Reply& reply) {
  const auto known = scripts_.find(Sha1Text{sha1}.view());
  if (known == scripts_.end()) return reply.error(no_script);
  execute(context, known, call, reply);
}

void ScriptRunner::fcall(Context& context, std::string_view function, const Call& call,
                         Reply& reply) {
  const auto* found = functions_.find(function);
  if (!found) return reply.error("ERR Function not found");
  const bool no_writes = (found->flags & flag_no_writes) != 0;
  if (call.read_only && !no_writes) return reply.error(writes_in_read_only);
  auto& lua = functions_.lua();
  execute(
      context, lua, found->name, no_writes, [&] { return lua.call(*found, call.keys, call.args); },
      reply);
}

void ScriptRunner::execute(Context& context, Scripts::iterator script, const Call& call,
                           Reply& reply) {
  auto& [sha1, compiled] = *script;
  if (call.read_only && compiled.has_header && !compiled.no_writes)
    return reply.error(writes_in_read_only);
  if (!compiled.kept) recent_.splice(recent_.begin(), recent_, compiled.use);
  execute(
      context, *lua_, sha1, call.read_only || compiled.no_writes,
      [&] { return lua_->call(compiled.script, call.keys, call.args); }, reply);
}

template <class Start>
void ScriptRunner::execute(Context& context, LuaState& lua, std::string_view name, bool read_only,
                           Start&& start, Reply& reply) {
  Undoable writes{context};
  const auto outcome = [&] {
    const InScript in_script{context, run_, read_only};
    return start();
  }();
  if (outcome) {
    if (!reply_result(lua.lua(), reply, run_.protocol, run_.limits.memory))
      run_.end = ScriptRun::End::memory;
    lua.pop();
  }
  if (run_.ended()) {
    reply.restart();
    return reply.error(run_.end_text());
  }
  writes.settle();
  if (outcome) return;
  auto text = fmt::format("{} script: {}", outcome.error(), name);
  if (run_.error_line >= 0) text += fmt::format(", on {}:{}.", run_.error_source, run_.error_line);
  reply.error(one_line(text));
}

}  // namespace sluice::engine
