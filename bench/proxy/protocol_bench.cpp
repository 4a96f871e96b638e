/// What the proxy thinks about one request and one reply, without sending anything: nanoseconds of
/// one thread. The requests lie in one buffer behind one another, as a pipelining client sends
/// them.
#include <functional>
#include <stdexcept>
#include <string>

#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"
#include "resp/writer.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr int pipeline = 64;
constexpr std::string_view key = "key:123456789012";  // 16 bytes

std::string many(const std::string& one) {
  std::string all;
  for (int i = 0; i < pipeline; ++i) all += one;
  return all;
}

std::string redis_request(const std::vector<std::string_view>& words) {
  std::string wire;
  resp::append_command(wire, words);
  return wire;
}

/// Reads and, when there is a protocol, plans all of `bytes`.
template <class Reader>
std::size_t walk(Reader& reader, proxy::Protocol* protocol, std::string_view bytes) {
  std::size_t done = 0;
  std::size_t planned = 0;
  for (; !bytes.empty(); ++done) {
    if (reader.read(bytes) != Reader::State::complete) throw std::runtime_error{"not complete"};
    if constexpr (requires { reader.words(); })
      planned += protocol->plan(reader.words()).keys.size();
    bytes.remove_prefix(reader.size());
  }
  if (protocol != nullptr && planned == 0) throw std::runtime_error{"no keys"};
  return done;
}

/// Nanoseconds for one.
double cost(std::chrono::milliseconds each, const std::function<std::size_t()>& work) {
  return 1e9 / rate(each, work);
}

struct Case {
  const char* figure;
  bool redis;
  std::string request;
  std::string reply;
  std::optional<double> goal;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const std::string value(32, 'v');
  std::vector<std::string_view> mget{"MGET"};
  mget.insert(mget.end(), 10, key);
  const std::string bulk = "$32\r\n" + value + "\r\n";
  std::string array = "*10\r\n";
  for (int i = 0; i < 10; ++i) array += bulk;
  const std::string set_line = "set " + std::string{key} + " 0 0 32\r\n" + value + "\r\n";
  const Case cases[] = {
      {"redis GET", true, redis_request({"GET", key}), bulk, 80.0},
      {"redis SET", true, redis_request({"SET", key, value}), "+OK\r\n", 100.0},
      {"redis MGET of 10", true, redis_request(mget), array, std::nullopt},
      {"memcached get", false, "get " + std::string{key} + "\r\n",
       "VALUE " + std::string{key} + " 0 32\r\n" + value + "\r\nEND\r\n", 100.0},
      {"memcached set", false, set_line, "STORED\r\n", std::nullopt},
  };
  Report report{"proxy protocol", options};
  for (const auto& row : cases) {
    proxy::PoolSettings settings;
    const auto protocol =
        row.redis ? proxy::make_redis_protocol(settings) : proxy::make_memcached_protocol(settings);
    const auto requests = protocol->request_reader();
    const auto replies = protocol->reply_reader();
    const auto sent = many(row.request);
    const auto answered = many(row.reply);
    Row asked{.figure = std::string{row.figure} + ", read and plan",
              .unit = "ns",
              .goal = row.goal,
              .at_most = true};
    Row heard{.figure = std::string{row.figure} + ", read the reply", .unit = "ns"};
    for (int round = 0; round < options.rounds; ++round) {
      asked.values.push_back(
          cost(options.each, [&] { return walk(*requests, protocol.get(), sent); }));
      heard.values.push_back(cost(options.each, [&] { return walk(*replies, nullptr, answered); }));
    }
    report.add(std::move(asked));
    report.add(std::move(heard));
  }
  report.print();
}
