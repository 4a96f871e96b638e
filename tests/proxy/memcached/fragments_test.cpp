// A get that is cut up, served in parts and merged must be what one server would have answered.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "proxy/memcached/asking.hpp"

namespace sluice::proxy {
namespace {

using Data = std::map<std::string, std::string, std::less<>>;

std::string served(const Data& data, Words keys) {
  std::string reply;
  for (const auto key : keys)
    if (const auto found = data.find(key); found != data.end())
      reply += "VALUE " + found->first + " 0 " + std::to_string(found->second.size()) + "\r\n" +
               found->second + "\r\n";
  return reply + "END\r\n";
}

RC_GTEST_PROP(MemcachedFragments, AnswerAsOneServer, ()) {
  const auto key = rc::gen::element<std::string>("a", "b", "END", "VALUE", "key:7", "a0", "z");
  const auto value =
      rc::gen::element<std::string>("", "END\r\n", "VALUE b 0 1\r\nx\r\nEND\r\n", "abc");
  const auto pairs = *rc::gen::container<std::map<std::string, std::string>>(key, value);
  const Data data{pairs.begin(), pairs.end()};
  const auto asked_for = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(key));
  const auto homes = *rc::gen::inRange<std::size_t>(1, 5);

  std::string line = "get";
  for (const auto& word : asked_for) line += " " + word;
  Asked asked = ask(line + "\r\n");
  const auto whole = served(data, asked.words().subspan(1));
  std::vector<std::vector<std::uint32_t>> places(homes);
  for (std::uint32_t at = 0; at < asked.plan.keys.size(); ++at)
    places[std::hash<std::string>{}(asked_for[at]) % homes].push_back(at);
  std::vector<std::string> replies;
  std::vector<FragmentReply> fragments;
  replies.reserve(homes);
  for (const auto& part : places) {
    if (part.empty()) continue;
    std::string wire;
    asked.protocol().append_fragment(wire, asked.words(), asked.plan, part);
    const auto fragment = ask(wire);
    RC_ASSERT(fragment.size() == wire.size());
    replies.push_back(served(data, fragment.words().subspan(1)));
    fragments.push_back({replies.back(), part, false});
  }
  std::string merged;
  asked.protocol().append_merged(merged, asked.words(), asked.plan, fragments, false);
  RC_ASSERT(merged == whole);
}

}  // namespace
}  // namespace sluice::proxy
