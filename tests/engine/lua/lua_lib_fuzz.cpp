// The libraries that read a script's bytes, on any bytes: decoders give a value or an error, and
// what was decoded survives being encoded and decoded again. The first byte chooses.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/engine_session.hpp"
#include "engine/lua/scripts.hpp"

namespace {

using namespace sluice::engine;

struct Target {
  const char* script;
};

// ARGV[1] is the input; "bad" is a finding.
constexpr Target targets[] = {
    {"local ok, v = pcall(cjson.decode, ARGV[1]) if not ok then return 'refused' end "
     "local again, text = pcall(cjson.encode, v) if not again then return 'refused' end "
     "if text:find('inf') or text:find('nan') then return 'refused' end "
     "return #cjson.encode(cjson.decode(text)) == #text and 'good' or 'bad'"},  // an object's order
                                                                                // is not kept
    {"local ok = pcall(cmsgpack.unpack, ARGV[1]) return 'good'"},
    {"local ok, v = pcall(cmsgpack.unpack_one, ARGV[1]) return 'good'"},
    {"local n = ARGV[1]:byte() or 0 local f, d = ARGV[1]:sub(2, 1 + n % 32), ARGV[1]:sub(2 + n % "
     "32) "
     "pcall(struct.unpack, f, d) pcall(struct.size, f) pcall(struct.pack, f, d, d, 1, 2, 3) return "
     "'good'"},
    {"local n = ARGV[1]:byte() or 0 local p, s = ARGV[1]:sub(2, 1 + n % 32), ARGV[1]:sub(2 + n % "
     "32) "
     "pcall(string.find, s, p) pcall(string.gsub, s, p, '%0') for w in s:gmatch('%a+') do end "
     "return 'good'"},
    {"local f = loadstring(ARGV[1]) return 'good'"},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static EngineSession session;
  static const bool limited = [] {
    session.engine.scripts().set_limits({.steps = 2'000'000, .memory = 64UL << 20});
    return true;
  }();
  if (!limited || size == 0) return 0;
  const auto& target = targets[data[0] % std::size(targets)];
  const std::string input{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto reply = session.run(Line{"EVAL", target.script, "0", input});
  if (reply.is_text() && reply.as_text() == "bad") {
    std::fprintf(stderr, "lua_lib_fuzz: what was decoded is not what is encoded\n");
    std::abort();
  }
  return 0;
}
