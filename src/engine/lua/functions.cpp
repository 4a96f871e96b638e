#include "engine/lua/functions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/lua/reply.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {
namespace {

using Failure = std::unexpected<std::string>;

Failure failed(std::string_view text) { return Failure{fmt::format("ERR {}", text)}; }

/// The first line of a library: "#!lua name=NAME".
struct LibraryHeader {
  std::string_view name;
  std::string_view body;  ///< from the line's end on, so that lines keep their numbers
};

std::expected<LibraryHeader, std::string> read_library_header(std::string_view code) {
  if (!code.starts_with("#!")) return failed("Missing library metadata");
  const auto end = code.find('\n');
  if (end == code.npos) return failed("Invalid library metadata");
  LibraryHeader header{{}, code.substr(end)};
  bool has_name = false;
  auto line = code.substr(2, end - 2);
  const auto word = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    const auto taken = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(taken.size());
    return taken;
  };
  const auto machine = word();
  for (auto option = word(); !option.empty(); option = word()) {
    if (option.size() < 5 || !resp::is_word(option.substr(0, 5), "name="))
      return failed(fmt::format("Invalid metadata value given: {}", option));
    if (has_name) return failed("Invalid metadata value, name argument was given multiple times");
    header.name = option.substr(5);
    has_name = true;
  }
  if (!has_name) return failed("Library name was not given");
  if (!is_function_name(header.name)) return failed(wrong_function_name);
  if (!resp::is_word(machine, "lua")) return failed(fmt::format("Engine '{}' not found", machine));
  return header;
}

bool is_named(const LuaFunction& function, std::string_view name) {
  return std::ranges::equal(function.name, name, {}, resp::lower, resp::lower);
}

bool has_library(const std::vector<FunctionLibrary>& some, std::string_view name) {
  return std::ranges::find(some, name, &FunctionLibrary::name) != some.end();
}

}  // namespace

std::expected<FunctionLibrary, std::string> FunctionLibraries::make(std::string_view code,
                                                                    bool replace) {
  const auto header = read_library_header(code);
  if (!header) return Failure{header.error()};
  if (!replace && libraries_.contains(header->name))
    return failed(fmt::format("Library '{}' already exists", header->name));
  if (!lua_) lua_ = std::make_unique<LuaState>(run_, LuaState::Use::functions);
  FunctionLibrary library{std::string{header->name}, std::string{code}, {}};
  const auto loaded = lua_->load(header->body, library.functions);
  if (loaded && !library.functions.empty()) return library;
  forget(library);
  if (!loaded) return Failure{loaded.error()};
  return failed("No functions registered");
}

void FunctionLibraries::forget(const FunctionLibrary& library) {
  for (const auto& function : library.functions) lua_->forget(function);
}

std::expected<void, std::string> FunctionLibraries::join(std::vector<FunctionLibrary>& more,
                                                         Join join) {
  const auto is_replaced = [&](const FunctionLibrary& old) {
    return join == Join::flush || has_library(more, old.name);
  };
  for (const auto& library : more)
    if (join == Join::append && libraries_.contains(library.name))
      return failed(fmt::format("Library {} already exists", library.name));
  for (const auto& library : more)
    for (const auto& function : library.functions)
      for (const auto& [name, old] : libraries_)
        if (!is_replaced(old) && std::ranges::any_of(old.functions, [&](const auto& there) {
              return is_named(there, function.name);
            }))
          return failed(fmt::format("Function {} already exists", function.name));
  std::erase_if(libraries_, [&](const auto& old) {
    if (!is_replaced(old.second)) return false;
    forget(old.second);
    return true;
  });
  for (auto& library : more) libraries_.insert_or_assign(library.name, std::move(library));
  return {};
}

std::expected<std::string, std::string> FunctionLibraries::load(std::string_view code,
                                                                bool replace) {
  auto library = make(code, replace);
  if (!library) return Failure{library.error()};
  std::vector<FunctionLibrary> one{*std::move(library)};
  auto name = one.front().name;
  if (const auto joined = join(one, Join::replace); !joined) {
    forget(one.front());
    return Failure{joined.error()};
  }
  return name;
}

std::expected<void, std::string> FunctionLibraries::load_all(const std::vector<std::string>& codes,
                                                             Join join) {
  std::vector<FunctionLibrary> more;
  std::expected<void, std::string> done;
  for (const auto& code : codes) {
    auto library = make(code, true);
    if (!library) done = Failure{library.error()};
    if (done && has_library(more, library->name))
      done = failed(fmt::format("Library '{}' already exists", library->name));
    if (!done) break;
    more.push_back(*std::move(library));
  }
  if (done) done = this->join(more, join);
  if (!done)
    for (const auto& library : more) forget(library);
  return done;
}

bool FunctionLibraries::erase(std::string_view name) {
  const auto found = libraries_.find(name);
  if (found == libraries_.end()) return false;
  forget(found->second);
  libraries_.erase(found);
  return true;
}

void FunctionLibraries::flush() {
  libraries_.clear();
  lua_.reset();
}

const LuaFunction* FunctionLibraries::find(std::string_view function) const {
  for (const auto& [name, library] : libraries_)
    for (const auto& one : library.functions)
      if (is_named(one, function)) return &one;
  return nullptr;
}

}  // namespace sluice::engine
