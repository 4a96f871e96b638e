// What is cut up, served in parts and merged must be what one server would have answered.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <charconv>
#include <map>

#include "proxy/support/planning.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

using Strings = std::vector<std::string>;

/// The few commands that are cut up, as a server executes them.
class Server {
 public:
  std::string serve(Words words) {
    std::string reply;
    resp::ReplyWriter writer{reply};
    const std::string name = lower(words[0]);
    if (name == "mget") {
      writer.array(words.size() - 1);
      for (const auto key : words.subspan(1)) get(writer, key);
    } else if (name == "mset") {
      for (std::size_t at = 1; at < words.size(); at += 2)
        data[std::string{words[at]}] = words[at + 1];
      writer.simple("OK");
    } else {
      std::int64_t count = 0;
      for (const auto key : words.subspan(1))
        count += static_cast<std::int64_t>(name == "exists" || name == "touch"
                                               ? data.count(std::string{key})
                                               : data.erase(std::string{key}));
      writer.integer(count);
    }
    return reply;
  }

  std::map<std::string, std::string> data;

 private:
  static std::string lower(std::string_view word) {
    std::string text{word};
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
  void get(resp::ReplyWriter& writer, std::string_view key) const {
    const auto found = data.find(std::string{key});
    if (found == data.end())
      writer.null();
    else
      writer.bulk(found->second);
  }
};

/// A pool of such servers behind the protocol.
class Pool {
 public:
  Pool(std::size_t servers, Compat compat) : servers_(servers) {
    auto settings = redis_settings();
    settings.compat = compat;
    protocol_ = make_redis_protocol(settings);
    reader_ = protocol_->request_reader();
  }

  std::string serve(const std::string& wire) {
    RC_ASSERT(reader_->read(wire) == RequestReader::State::complete);
    const WordList words{reader_->words().begin(), reader_->words().end()};
    const auto plan = protocol_->plan(words);
    if (plan.route == Route::one) return servers_[home_of(words[plan.keys[0]])].serve(words);
    RC_ASSERT(plan.route == Route::homes);
    return merge(words, plan, cut(words, plan));
  }

 private:
  std::size_t home_of(std::string_view key) const {
    return std::hash<std::string_view>{}(key) % servers_.size();
  }

  std::vector<std::vector<std::uint32_t>> cut(const WordList& words, const Plan& plan) const {
    std::vector<std::vector<std::uint32_t>> places(servers_.size());
    for (std::uint32_t at = 0; at < plan.keys.size(); ++at)
      places[home_of(words[plan.keys[at]])].push_back(at);
    return places;
  }

  std::string merge(const WordList& words, const Plan& plan,
                    const std::vector<std::vector<std::uint32_t>>& places) {
    std::vector<std::string> replies(servers_.size());
    std::vector<FragmentReply> fragments;
    for (std::size_t home = 0; home < servers_.size(); ++home) {
      if (places[home].empty()) continue;
      std::string wire;
      protocol_->append_fragment(wire, words, plan, places[home]);
      const auto reader = protocol_->request_reader();
      RC_ASSERT(reader->read(wire) == RequestReader::State::complete);
      RC_ASSERT(reader->size() == wire.size());
      replies[home] = servers_[home].serve(reader->words());
      fragments.push_back({replies[home], places[home], false});
    }
    std::string reply;
    protocol_->append_merged(reply, words, plan, fragments, false);
    return reply;
  }

  std::vector<Server> servers_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<RequestReader> reader_;
};

std::string wire_of(const Strings& words) {
  std::string wire;
  resp::append_command(wire, WordList{words.begin(), words.end()});
  return wire;
}

rc::Gen<Strings> requests() {
  const auto key = rc::gen::element<std::string>("a", "b", "c", "dd", "", std::string("\r\n\0", 3),
                                                 "$1\r\n", "key:7");
  return rc::gen::mapcat(rc::gen::element<std::string>("MGET", "MSET", "DEL", "UNLINK", "TOUCH"),
                         [key](std::string name) {
                           return rc::gen::map(rc::gen::nonEmpty(rc::gen::container<Strings>(key)),
                                               [name](Strings words) {
                                                 if (name == "MSET" && words.size() % 2 == 1)
                                                   words.push_back(words.front());
                                                 words.insert(words.begin(), name);
                                                 return words;
                                               });
                         });
}

void is_as_one_server(Compat compat) {
  const auto homes = *rc::gen::inRange<std::size_t>(1, 6);
  Pool pool{homes, compat};
  Server alone;
  for (const auto& request : *rc::gen::container<std::vector<Strings>>(requests())) {
    const auto whole = alone.serve(WordList{request.begin(), request.end()});
    RC_ASSERT(pool.serve(wire_of(request)) == whole);
  }
}

RC_GTEST_PROP(RedisFragments, AnswerAsOneServer, ()) { is_as_one_server(Compat::relaxed); }
RC_GTEST_PROP(RedisFragments, AnswerAsOneServerInStrictMode, ()) {
  is_as_one_server(Compat::strict);
}

}  // namespace
}  // namespace sluice::proxy
