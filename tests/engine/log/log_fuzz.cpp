// Any bytes as a log: they are refused with an Error, or loaded; and what was loaded is loaded
// again, whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "engine/log/append_log.hpp"
#include "engine/log/memory_disk.hpp"
#include "engine/log/record.hpp"

namespace {

using namespace sluice::engine;

/// The commands of the log, or nothing where it is refused.
std::size_t load(test::MemoryDisk& disk, bool& refused) {
  std::size_t words = 0;
  try {
    const AppendLog log{disk.folder(), [&](sluice::Words command) { words += command.size(); }};
    refused = false;
  } catch (const sluice::Error&) {
    refused = true;
  }
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first byte says how much of the rest is the manifest; 0: a sound one.
  std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t manifest_size =
      input.empty() ? 0 : std::min<std::size_t>(static_cast<unsigned char>(input[0]), size - 1);
  if (!input.empty()) input.remove_prefix(1);
  test::MemoryDisk disk;
  disk.put("appendonly.aof.manifest",
           manifest_size == 0 ? std::string{"file appendonly.aof.1.incr.aof seq 1 type i\n"}
                              : std::string{input.substr(0, manifest_size)});
  disk.put("appendonly.aof.1.incr.aof", std::string{input.substr(manifest_size)});
  bool refused = false;
  const auto first = load(disk, refused);
  if (refused) return 0;
  const auto second = load(disk, refused);
  if (refused || first != second) std::abort();
  return 0;
}
