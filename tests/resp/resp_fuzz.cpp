// Both parsers on any bytes. The first byte chooses the parser and how the bytes are cut. Whole or
// in pieces the outcome must be the same, and what was read must survive being written and read
// again.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resp/command_table.hpp"
#include "resp/reply_parser.hpp"
#include "resp/request_parser.hpp"
#include "resp/writer.hpp"
#include "support/fuzz_require.hpp"

namespace {

using namespace sluice;
using test::require;
using namespace sluice::resp;

template <class Item>
struct Outcome {
  std::vector<Item> items;
  std::string refused;
};

// Small limits, so that the fuzzer reaches them.
constexpr ReplyLimits reply_limits{
    .bulk = 64, .line = 64, .items = 256, .depth = 8, .whole = 4096, .passed_over = 100'000};
constexpr RequestLimits request_limits{.bulk = 4096, .words = 64, .line = 64, .whole = 8192};

// Those that matter for where a reply ends are the same.
constexpr ReplyLimits large_limits{
    .bulk = 100'000, .line = 64, .items = 256, .depth = 100'000, .passed_over = 100'000};

Outcome<Value> replies(std::string_view bytes, std::size_t step, ReplyLimits limits) {
  Outcome<Value> outcome;
  ReplyParser parser{limits};
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
      auto piece = bytes.substr(0, step);
      while (auto value = parser.next(piece)) outcome.items.push_back(std::move(*value));
    }
  } catch (const Error& error) {
    outcome.refused = error.message();
  }
  return outcome;
}

Outcome<std::vector<std::string>> requests(std::string_view bytes, std::size_t step) {
  Outcome<std::vector<std::string>> outcome;
  RequestParser parser{request_limits};
  std::string buffer;
  std::vector<std::size_t> keys;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    buffer = buffer + std::string{bytes.substr(0, step)};
    while (!buffer.empty() && parser.parse(buffer) == RequestParser::State::complete) {
      require(parser.size() > 0 && parser.size() <= buffer.size(), "a request of a wrong size");
      outcome.items.emplace_back(parser.words().begin(), parser.words().end());
      if (const auto* spec = find_command(parser.words());
          spec && keys_of(*spec, parser.words(), keys))
        for (const auto at : keys) require(at < parser.words().size(), "a key that is not there");
      buffer.erase(0, parser.size());
    }
    if (parser.state() == RequestParser::State::bad) {
      outcome.refused = parser.error();
      break;
    }
  }
  return outcome;
}

/// The bytes, since NaN does not equal itself.
std::string written(const std::vector<Value>& values, int protocol) {
  std::string wire;
  ReplyWriter writer{wire, protocol};
  for (const auto& value : values) writer.value(value);
  return wire;
}

bool is_passed_over(const Value& value) {
  if (value.is_error()) return value.as_text().starts_with(beyond_a_limit);
  return value == Value::aggregate(Value::Type::push, {});
}

/// A reply beyond a limit ends where it ends for a parser that takes it.
void check_ends(const std::vector<Value>& small, std::string_view bytes) {
  const auto large = replies(bytes, bytes.size() + 1, large_limits);
  for (std::size_t i = 0; i < std::min(small.size(), large.items.size()); ++i)
    require(is_passed_over(small[i]) || written({small[i]}, 3) == written({large.items[i]}, 3),
            "a reply differs from that of a parser with larger limits");
  // Of what is passed over, numbers are not read.
  require(large.refused.empty() ? large.items.size() == small.size()
                                : large.items.size() <= small.size(),
          "a reply is lost behind one that is passed over");
}

void check_replies(std::string_view bytes, std::size_t step) {
  const auto whole = replies(bytes, bytes.size() + 1, reply_limits);
  const auto pieces = replies(bytes, step, reply_limits);
  if (whole.refused.empty()) check_ends(whole.items, bytes);
  const auto wire = written(whole.items, 3);
  require(written(pieces.items, 3) == wire, "replies differ when they are cut");
  require(pieces.refused.empty() == whole.refused.empty(), "a refusal depends on the cut");
  ReplyParser parser;
  std::string_view rest = wire;
  std::vector<Value> again;
  while (auto value = parser.next(rest)) again.push_back(std::move(*value));
  require(written(again, 3) == wire, "replies differ when they are written and read again");
  written(whole.items, 2);
}

void check_requests(std::string_view bytes, std::size_t step) {
  const auto whole = requests(bytes, bytes.size() + 1);
  const auto pieces = requests(bytes, step);
  require(pieces.items == whole.items, "requests differ when they are cut");
  require(pieces.refused == whole.refused, "a refusal depends on the cut");
  for (const auto& words : whole.items) {
    std::string wire;
    append_command(wire, std::vector<std::string_view>{words.begin(), words.end()});
    RequestParser parser;
    require(parser.parse(wire) == RequestParser::State::complete && parser.size() == wire.size() &&
                std::ranges::equal(parser.words(), words),
            "a request differs when it is written and read again");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  const std::size_t step = data[0] / 2 % 32 + 1;
  if (data[0] % 2 == 0)
    check_replies(bytes, step);
  else
    check_requests(bytes, step);
  return 0;
}
