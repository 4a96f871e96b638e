/// A crawler that asks nobody twice, and remembers over a restart what it has seen.
///   seen_urls [FILE]     default: a new file below the folder for temporary files
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sluice/bloom_filter.hpp>
#include <sluice/error.hpp>

namespace fs = std::filesystem;

/// What was seen before; nothing, when there is no file yet or it is damaged.
static sluice::BloomFilter seen_before(const std::string& file) {
  if (fs::exists(file)) try {
      return sluice::BloomFilter::load(file);
    } catch (const sluice::Error& error) {
      fmt::print(stderr, "{}\n", error.message());
    }
  return sluice::BloomFilter{{.expected = 1'000'000, .error_rate = 0.001}};
}

int main(int count, char** words) {
  const std::string file =
      count > 1 ? words[1] : fs::temp_directory_path() / fmt::format("seen-{}", ::getpid());

  for (int start = 1; start <= 2; ++start) {
    auto seen = seen_before(file);
    for (const auto* const url : {"https://example.org/", "https://example.org/news"})
      if (seen.add(url))
        fmt::print("start {}: fetch {}\n", start, url);  // certainly the first time
      else
        fmt::print("start {}: skip {}\n", start, url);  // once in a thousand a mistake
    const auto info = seen.info();
    fmt::print("{} keys in {} KiB, wrong for {:.1e} of others\n", info.keys, info.bytes / 1024,
               info.error_rate);
    seen.save(file);
  }
  if (count == 1) fs::remove(file);
}
