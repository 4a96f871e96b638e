#include "engine/lua/private_arguments.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {
namespace {

// Lua 5.1 writes a function as: name of the source, two line numbers, four bytes; its instructions;
// its constants; the functions written inside it; and what a debugger wants. A count is an int, a
// text a size_t with its bytes. Everything is in the form of this machine, since no other process
// reads it.

constexpr std::size_t header_size = 12;

enum Opcode : std::uint32_t {
  op_move = 0,
  op_loadk = 1,
  op_getglobal = 5,
  op_gettable = 6,
  op_setglobal = 7,
  op_add = 12,
  op_pow = 17,
  op_len = 20,
};

/// One instruction: an opcode of 6 bits, register A of 8, then C and B of 9 each, or both as one.
struct Instruction {
  std::uint32_t bits;

  std::uint32_t opcode() const noexcept { return bits & 0x3f; }
  std::uint32_t a() const noexcept { return bits >> 6 & 0xff; }
  std::uint32_t c() const noexcept { return bits >> 14 & 0x1ff; }
  std::uint32_t b() const noexcept { return bits >> 23; }
  std::uint32_t constant() const noexcept { return bits >> 14; }
};

/// An instruction that neither reads nor writes `reg`.
bool computes_beside(Instruction one, std::uint32_t reg) {
  const auto opcode = one.opcode();
  if (one.a() == reg) return false;
  if (opcode == op_loadk) return true;
  if (opcode == op_move) return one.b() != reg;
  return opcode >= op_add && opcode <= op_pow && one.b() != reg && one.c() != reg;
}

int append(lua_State*, const void* bytes, std::size_t size, void* text) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), size);
  return 0;
}

class Chunk {
 public:
  explicit Chunk(std::string_view bytes) : left_(bytes) { skip(header_size); }

  ChunkFacts facts() {
    facts_.may_assign_globals = false;
    facts_.only_looks_words_up = true;
    read_function();
    return good_ ? std::move(facts_) : ChunkFacts{};
  }

 private:
  void read_function() {
    take_text();
    skip(2 * sizeof(int) + 4);
    std::vector<Instruction> code;
    for (int i = count(); i > 0 && good_; --i) code.push_back({take<std::uint32_t>()});
    judge(code, take_constants());
    for (int inner = count(); inner > 0 && good_; --inner) read_function();
    skip_debug();
  }

  void judge(const std::vector<Instruction>& code, const std::vector<std::string_view>& constants) {
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (code[i].opcode() == op_setglobal) facts_.may_assign_globals = true;
      if (code[i].opcode() != op_getglobal) continue;
      good_ = good_ && code[i].constant() < constants.size();
      if (!good_) return;
      const auto name = constants[code[i].constant()];
      facts_.globals.emplace_back(name);
      if (name == "KEYS" || name == "ARGV")
        facts_.only_looks_words_up = facts_.only_looks_words_up && is_looked_up(code, i);
    }
  }

  /// Instruction `at` loads a table into a register; the lookup overwrites it before any other
  /// instruction can copy it.
  static bool is_looked_up(const std::vector<Instruction>& code, std::size_t at) {
    const auto reg = code[at].a();
    for (++at; at < code.size() && computes_beside(code[at], reg);) ++at;  // the index, KEYS[i + 1]
    if (at == code.size() || code[at].a() != reg || code[at].b() != reg) return false;
    return code[at].opcode() == op_len || (code[at].opcode() == op_gettable && code[at].c() != reg);
  }

  /// The texts among them; empty for any other.
  std::vector<std::string_view> take_constants() {
    std::vector<std::string_view> constants;
    for (int i = count(); i > 0 && good_; --i) {
      std::string_view text;
      switch (take<char>()) {
        case LUA_TNIL: break;
        case LUA_TBOOLEAN: skip(1); break;
        case LUA_TNUMBER: skip(sizeof(lua_Number)); break;
        case LUA_TSTRING: text = take_text(); break;
        default: good_ = false;
      }
      constants.push_back(text);
    }
    return constants;
  }

  void skip_debug() {
    for (int lines = count(); lines > 0 && good_; --lines) skip(sizeof(int));
    for (int locals = count(); locals > 0 && good_; --locals) {
      take_text();
      skip(2 * sizeof(int));
    }
    for (int upvalues = count(); upvalues > 0 && good_; --upvalues) take_text();
  }

  int count() { return take<int>(); }
  /// Without the NUL that ends it.
  std::string_view take_text() {
    const auto size = take<std::size_t>();
    const auto text = left_.substr(0, size);
    skip(size);
    return good_ && !text.empty() ? text.substr(0, text.size() - 1) : std::string_view{};
  }
  void skip(std::size_t size) {
    good_ = good_ && size <= left_.size();
    if (good_) left_.remove_prefix(size);
  }
  template <class Number>
  Number take() {
    Number number{};
    if (good_ && sizeof number <= left_.size()) std::memcpy(&number, left_.data(), sizeof number);
    skip(sizeof number);
    return number;
  }

  std::string_view left_;
  bool good_ = true;
  ChunkFacts facts_;
};

constexpr std::size_t few_words = 32;
constexpr std::size_t short_word = 1024;

/// Globals through which a script can reach neither another table of globals nor a register of its
/// caller.
constexpr std::string_view harmless[] = {
    "ARGV",   "KEYS",   "assert", "bit",      "cjson",    "cmsgpack", "error",
    "ipairs", "math",   "next",   "pairs",    "pcall",    "redis",    "select",
    "string", "struct", "table",  "tonumber", "tostring", "type",     "unpack",
};

bool are_harmless(const std::vector<std::string>& globals) {
  return std::ranges::all_of(globals, [](const std::string& name) {
    return std::ranges::find(harmless, name) != std::end(harmless);
  });
}

}  // namespace

ChunkFacts facts_of(lua_State* lua) {
  std::string bytes;
  if (lua_dump(lua, append, &bytes) != 0) return {};
  return Chunk{bytes}.facts();
}

std::optional<PrivateArguments> PrivateArguments::of(lua_State* lua, const ChunkFacts& facts,
                                                     int globals) {
  if (facts.may_assign_globals || !facts.only_looks_words_up || !are_harmless(facts.globals))
    return std::nullopt;
  PrivateArguments words;
  lua_newtable(lua);
  for (const auto& name : facts.globals) {
    push_text(lua, name);
    lua_pushvalue(lua, -1);
    lua_rawget(lua, globals);
    lua_rawset(lua, -3);
  }
  lua_pushvalue(lua, -1);
  words.environment_ = luaL_ref(lua, LUA_REGISTRYINDEX);
  lua_setfenv(lua, -2);
  words.make(lua, words.keys_);
  words.make(lua, words.args_);
  return words;
}

void PrivateArguments::make(lua_State* lua, Table& table) {
  luaL_unref(lua, LUA_REGISTRYINDEX, table.reference);
  table.held.clear();
  table.large = false;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, environment_);
  lua_newtable(lua);
  lua_pushvalue(lua, -1);
  table.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  lua_setfield(lua, -2, table.name);
  lua_pop(lua, 1);
}

void PrivateArguments::give(lua_State* lua, Words keys, Words args) {
  fill(lua, keys_, keys);
  fill(lua, args_, args);
}

void PrivateArguments::fill(lua_State* lua, Table& table, Words words) {
  auto& held = table.held;
  table.large = words.size() > few_words;
  held.reserve(words.size());
  const int before = lua_gettop(lua);
  for (std::size_t i = 0; i < std::max(words.size(), held.size()); ++i) {
    if (i < words.size() && i < held.size() && held[i] == words[i]) continue;
    if (lua_gettop(lua) == before) lua_rawgeti(lua, LUA_REGISTRYINDEX, table.reference);
    std::string_view kept;
    if (i < words.size()) {
      push_text(lua, words[i]);
      kept = {lua_tostring(lua, -1), words[i].size()};
      table.large = table.large || kept.size() > short_word;
    } else {
      lua_pushnil(lua);
    }
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    if (i < held.size()) {
      held[i] = kept;
    } else {
      held.push_back(kept);
    }
  }
  held.resize(words.size());
  lua_settop(lua, before);
}

void PrivateArguments::let_go_of_large(lua_State* lua) {
  for (Table* const table : {&keys_, &args_})
    if (table->large) make(lua, *table);
}

void PrivateArguments::forget(lua_State* lua) {
  for (const int reference : {environment_, keys_.reference, args_.reference})
    luaL_unref(lua, LUA_REGISTRYINDEX, reference);
}

}  // namespace sluice::engine
