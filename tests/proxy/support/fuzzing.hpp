/// What the fuzz targets of the protocols have in common: bytes in pieces must give what the same
/// bytes give at once.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"
#include "support/fuzz_require.hpp"

namespace sluice::proxy {

using test::require;

inline constexpr std::size_t fuzzed_size_limit = 4096;

/// A plan must be usable, whatever the words were.
inline void check_plan(Protocol& protocol, Words words) {
  const auto plan = protocol.plan(words);
  require(plan.command < protocol.command_count(), "a command without a number");
  for (const auto key : plan.keys) require(key < words.size(), "a key that is not there");
  if (plan.route == Route::local) require(!plan.reply.empty(), "a local route without a reply");
  if (plan.route != Route::homes) return;
  require(plan.keys.size() > 1 && plan.merge != Merge::none, "a request that cannot be cut up");
  std::vector<std::uint32_t> all(plan.keys.size());
  for (std::uint32_t at = 0; at < all.size(); ++at) all[at] = at;
  std::string wire;
  protocol.append_fragment(wire, words, plan, all);
  if (wire.size() > fuzzed_size_limit) return;  // a typed line is shorter than it
  const auto reader = protocol.request_reader();
  require(reader->read(wire) == RequestReader::State::complete && reader->size() == wire.size(),
          "a fragment that is no request");
  const std::vector<std::size_t> keys{plan.keys.begin(), plan.keys.end()};
  const auto again = protocol.plan(reader->words());
  require(again.route == Route::homes && std::ranges::equal(again.keys, keys),
          "a fragment with other keys");
}

/// What was found: the end of each, and whether the last was bad. Each request's plan is checked.
template <class Reader>
std::vector<std::size_t> ends(Reader& reader, Protocol& protocol, std::string_view bytes,
                              std::size_t step) {
  constexpr auto bad = static_cast<std::size_t>(-1);
  std::vector<std::size_t> found;
  std::string buffer;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    buffer = buffer + std::string{bytes.substr(0, step)};  // moves
    while (!buffer.empty()) {
      const auto state = reader.read(buffer);
      if (state == Reader::State::incomplete) {
        require(reader.missing() > 0, "nothing is missing");
        break;
      }
      if (state == Reader::State::bad) {
        found.push_back(bad);
        return found;
      }
      require(reader.size() > 0 && reader.size() <= buffer.size(), "a wrong size");
      if constexpr (requires { reader.words(); })
        if (!reader.words().empty()) check_plan(protocol, reader.words());
      found.push_back(reader.size());
      buffer.erase(0, reader.size());
    }
  }
  return found;
}

/// Small limits, so that the fuzzer reaches them.
inline PoolSettings fuzzed_settings(Compat compat) {
  PoolSettings settings;
  settings.request_size_limit = fuzzed_size_limit;
  settings.request_words_limit = 64;
  settings.reply_size_limit = fuzzed_size_limit;
  settings.compat = compat;
  settings.allow = {"flushall", "randomkey", "stats"};
  return settings;
}

/// The first byte chooses requests or replies, the compatibility and how the bytes are cut.
inline void fuzz_protocol(Protocol& relaxed, Protocol& strict, std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  const auto bytes = input.substr(1);
  auto& protocol = (choice & 2) != 0 ? strict : relaxed;
  const std::size_t step = choice / 4 % 32 + 1;
  if ((choice & 1) == 0) {
    const auto whole = protocol.request_reader(), pieces = protocol.request_reader();
    require(ends(*whole, protocol, bytes, bytes.size() + 1) == ends(*pieces, protocol, bytes, step),
            "requests differ when they are cut");
  } else {
    const auto whole = protocol.reply_reader(), pieces = protocol.reply_reader();
    require(ends(*whole, protocol, bytes, bytes.size() + 1) == ends(*pieces, protocol, bytes, step),
            "replies differ when they are cut");
  }
}

}  // namespace sluice::proxy
