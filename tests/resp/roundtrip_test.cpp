// Random values and requests come back as they went, in whatever pieces they travel.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "resp/reply_parser.hpp"
#include "resp/request_parser.hpp"
#include "resp/writer.hpp"

namespace sluice::resp {
namespace {

std::string line() {
  return *rc::gen::container<std::string>(
      rc::gen::suchThat<char>([](char c) { return c != '\r' && c != '\n'; }));
}

std::string bytes() { return *rc::gen::container<std::string>(rc::gen::arbitrary<char>()); }

Value leaf() {
  using Type = Value::Type;
  switch (*rc::gen::inRange(0, 9)) {
    case 0: return Value{};
    case 1: return Value::boolean(*rc::gen::arbitrary<bool>());
    case 2: return Value::integer(*rc::gen::arbitrary<std::int64_t>());
    case 3: return Value::number(*rc::gen::arbitrary<double>());
    case 4: return Value::simple_string(line());
    case 5: return Value::error(line());
    case 6: return Value::text(Type::verbatim, bytes());
    case 7:
      return Value::text(Type::big_number, std::to_string(*rc::gen::arbitrary<std::int64_t>()));
    default: return Value::bulk_string(bytes());
  }
}

Value tree(int depth) {
  using Type = Value::Type;
  const auto kind = depth > 3 ? 9 : *rc::gen::inRange(0, 10);
  if (kind > 3) return leaf();
  constexpr Type types[] = {Type::array, Type::set, Type::map, Type::push};
  Value::Items items;
  const auto size = *rc::gen::inRange(0, 5) * (types[kind] == Type::map ? 2 : 1);
  for (int i = 0; i < size; ++i) items.push_back(tree(depth + 1));
  return Value::aggregate(types[kind], std::move(items));
}

/// Cuts `whole` where RapidCheck says.
template <class Take>
void in_pieces(std::string_view whole, Take take) {
  while (!whole.empty()) {
    const auto size = static_cast<std::size_t>(*rc::gen::inRange<int>(1, 24));
    take(whole.substr(0, size));
    whole.remove_prefix(std::min(size, whole.size()));
  }
}

TEST(RoundTrip, Replies) {
  EXPECT_TRUE(rc::check("a stream of RESP3 replies", [] {
    std::vector<Value> sent;
    std::string wire;
    ReplyWriter writer{wire, 3};
    const int count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) writer.value(sent.emplace_back(tree(0)));
    ReplyParser parser;
    std::vector<Value> got;
    in_pieces(wire, [&](std::string_view piece) {
      while (auto value = parser.next(piece)) got.push_back(std::move(*value));
    });
    RC_ASSERT(got == sent);
  }));
}

TEST(RoundTrip, Requests) {
  EXPECT_TRUE(rc::check("a stream of requests", [] {
    using Request = std::vector<std::string>;
    const auto sent = *rc::gen::container<std::vector<Request>>(rc::gen::arbitrary<Request>());
    std::string wire;
    for (const auto& request : sent)
      append_command(wire, std::vector<std::string_view>{request.begin(), request.end()});
    RequestParser parser;
    std::string buffer;
    std::vector<Request> got;
    in_pieces(wire, [&](std::string_view piece) {
      buffer += piece;
      while (!buffer.empty() && parser.parse(buffer) == RequestParser::State::complete) {
        got.emplace_back(parser.words().begin(), parser.words().end());
        buffer.erase(0, parser.size());
      }
    });
    RC_ASSERT(got == sent);
  }));
}

}  // namespace
}  // namespace sluice::resp
