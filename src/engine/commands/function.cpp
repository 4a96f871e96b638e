// FUNCTION and FCALL: libraries of functions (lua/functions.hpp).
#include <fmt/format.h>

#include <bit>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/lua/reply.hpp"
#include "engine/lua/scripts.hpp"
#include "engine/rdb/snapshot_fields.hpp"
#include "engine/rdb/snapshot_writer.hpp"

namespace sluice::engine {
namespace {

FunctionLibraries& libraries(Context& context) { return context.engine().scripts().functions(); }

template <class Outcome>
void refuse_unless(const Outcome& outcome) {
  if (!outcome) refuse(one_line(outcome.error()));
}

[[noreturn]] void refuse_form(Words words) {
  refuse(fmt::format(
      "ERR unknown subcommand or wrong number of arguments for '{}'. Try FUNCTION HELP.",
      shown(words[1])));
}

template <bool read_only>
void fcall(Context& context, Words words, Reply& reply) {
  if (!libraries(context).find(words[1])) return reply.error("ERR Function not found");
  const auto keys = read_integer(words[2], "ERR Bad number of keys provided");
  const auto rest = words.subspan(3);
  if (keys > static_cast<std::int64_t>(rest.size()))
    refuse("ERR Number of keys can't be greater than number of args");
  if (keys < 0) refuse("ERR Number of keys can't be negative");
  const auto count = static_cast<std::size_t>(keys);
  context.engine().scripts().fcall(context, words[1],
                                   {rest.first(count), rest.subspan(count), read_only}, reply);
  context.logged_already();
}

void function_load(Context& context, Words words, Reply& reply) {
  bool replace = false;
  for (const auto& word : words.subspan(2, words.size() - 3)) {
    if (!is_word(word, "replace")) refuse(fmt::format("ERR Unknown option given: {}", shown(word)));
    replace = true;
  }
  const auto name = libraries(context).load(words.back(), replace);
  refuse_unless(name);
  context.changed();
  reply.bulk(*name);
}

void function_delete(Context& context, Words words, Reply& reply) {
  if (!libraries(context).erase(words[2])) return reply.error("ERR Library not found");
  context.changed();
  reply.ok();
}

void function_flush(Context& context, Words words, Reply& reply) {
  if (words.size() > 3) refuse_form(words);
  if (words.size() == 3 && !is_word(words[2], "sync") && !is_word(words[2], "async"))
    return reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  libraries(context).flush();
  context.changed();
  reply.ok();
}

void function_dump(Context& context, Words, Reply& reply) {
  std::string all;
  for (const auto& [name, library] : libraries(context).all()) {
    all += static_cast<char>(snapshot_mark_library);
    append_text(all, library.code);
  }
  seal_value(all);
  reply.bulk(all);
}

std::vector<std::string> codes_in(std::string_view dumped) {
  std::vector<std::string> codes;
  const auto value = sealed_value(dumped);
  if (value.data() == nullptr) refuse("ERR DUMP payload version or checksum are wrong");
  TextSource source{value};
  SnapshotFields fields{source};
  try {
    while (!source.is_at_end()) {
      if (fields.byte() != snapshot_mark_library) refuse("ERR given type is not a function");
      codes.push_back(fields.text());
    }
  } catch (const Error&) {
    refuse("ERR failed loading the given functions payload");
  }
  return codes;
}

void function_restore(Context& context, Words words, Reply& reply) {
  using Join = FunctionLibraries::Join;
  static constexpr Choice<Join> policies[] = {
      {"append", Join::append}, {"replace", Join::replace}, {"flush", Join::flush}};
  if (words.size() > 4) refuse_form(words);
  auto join = Join::append;
  if (words.size() == 4 && !choose(words[3], policies, join))
    refuse("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  refuse_unless(libraries(context).load_all(codes_in(words[2]), join));
  context.changed();
  reply.ok();
}

void reply_function(const LuaFunction& function, Reply& reply) {
  reply.map(3);
  reply.bulk("name");
  reply.bulk(function.name);
  reply.bulk("description");
  reply.bulk_or_null(function.description ? &*function.description : nullptr);
  reply.bulk("flags");
  reply.set(static_cast<std::size_t>(std::popcount(function.flags)));
  for (std::size_t i = 0; i < script_flags.size(); ++i)
    if ((function.flags >> i & 1U) != 0) reply.simple(script_flags[i]);
}

void reply_library(const FunctionLibrary& library, bool with_code, Reply& reply) {
  reply.map(with_code ? 4 : 3);
  reply.bulk("library_name");
  reply.bulk(library.name);
  reply.bulk("engine");
  reply.bulk("LUA");
  reply.bulk("functions");
  reply.array(library.functions.size());
  for (const auto& function : library.functions) reply_function(function, reply);
  if (!with_code) return;
  reply.bulk("library_code");
  reply.bulk(library.code);
}

void function_list(Context& context, Words words, Reply& reply) {
  bool with_code = false;
  std::optional<std::string_view> pattern;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (!with_code && is_word(words[i], "withcode")) {
      with_code = true;
    } else if (!pattern && is_word(words[i], "libraryname")) {
      if (i + 1 == words.size()) refuse("ERR library name argument was not given");
      pattern = words[++i];
    } else {
      refuse(fmt::format("ERR Unknown argument {}", shown(words[i])));
    }
  }
  std::vector<const FunctionLibrary*> found;
  for (const auto& [name, library] : libraries(context).all())
    if (!pattern || glob_matches(upper(*pattern), upper(name))) found.push_back(&library);
  reply.array(found.size());
  for (const auto* library : found) reply_library(*library, with_code, reply);
}

/// No function runs while this does: each has the engine's lock.
void function_stats(Context& context, Words, Reply& reply) {
  std::size_t functions = 0;
  const auto& all = libraries(context).all();
  for (const auto& [name, library] : all) functions += library.functions.size();
  reply.map(2);
  reply.bulk("running_script");
  reply.null();
  reply.bulk("engines");
  reply.map(1);
  reply.bulk("LUA");
  reply.map(2);
  reply.bulk("libraries_count");
  reply.count(all.size());
  reply.bulk("functions_count");
  reply.count(functions);
}

void function_kill(Context&, Words, Reply& reply) {
  reply.error("NOTBUSY No scripts in execution right now.");
}

}  // namespace

CommandRows function_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"fcall", fcall<false>},
      {"fcall_ro", fcall<true>},
      {"function|delete", function_delete},
      {"function|dump", function_dump},
      {"function|flush", function_flush},
      {"function|kill", function_kill},
      {"function|list", function_list},
      {"function|load", function_load},
      {"function|restore", function_restore},
      {"function|stats", function_stats},
  };
  return rows;
}

}  // namespace sluice::engine
