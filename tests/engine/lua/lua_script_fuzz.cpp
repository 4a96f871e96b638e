// Scripts made of any bytes: none crashes or hangs, none is seen by the next one, and one that is
// ended has done nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine/lua/script_maker.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static sluice::test::ScriptStage stage;
  const auto script = sluice::test::script_of({data, size});
  if (const auto finding = stage.run(script); !finding.empty()) {
    std::fprintf(stderr, "lua_script_fuzz: %s\n--- the script:\n%s", finding.c_str(),
                 script.c_str());
    std::abort();
  }
  return 0;
}
