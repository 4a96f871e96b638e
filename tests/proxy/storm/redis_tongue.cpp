/// RESP and typed lines: what MONITOR says that the servers have executed is held against what was
/// meant, and their statistics against what may not be.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "proxy/redis/redis_protocol.hpp"
#include "proxy/storm/redis_words.hpp"
#include "proxy/storm/tongue.hpp"
#include "proxy/storm/wire.hpp"
#include "proxy/support/nutcracker.hpp"
#include "resp/command_table.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using Deeds = std::vector<std::string>;
using proxy::SessionVerb;

std::string encoded(std::initializer_list<std::string_view> words) {
  std::string bytes;
  resp::append_command(bytes, std::vector<std::string_view>{words});
  return bytes;
}

std::string bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }

/// As MONITOR writes a word.
std::string quoted(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    const auto number = static_cast<unsigned char>(c);
    switch (c) {
      case '\\': text += "\\\\"; break;
      case '"': text += "\\\""; break;
      case '\n': text += "\\n"; break;
      case '\r': text += "\\r"; break;
      case '\t': text += "\\t"; break;
      case '\a': text += "\\a"; break;
      case '\b': text += "\\b"; break;
      default:
        if (number >= 0x20 && number < 0x7f)
          text += c;
        else
          text += fmt::format("\\x{:02x}", number);
    }
  }
  return text + '"';
}

/// The words of a line of MONITOR, still in quotes.
std::vector<std::string> quoted_words(std::string_view line) {
  std::vector<std::string> words;
  for (auto at = line.find('"'); at < line.size(); at = line.find('"', at)) {
    auto end = at + 1;
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    words.emplace_back(line.substr(at, end + 1 - at));
    at = end + 1;
  }
  return words;
}

/// What the proxy says on its own, or says otherwise than it was told: what a connection remembers.
bool is_of_a_session(std::string_view name) {
  static constexpr std::string_view names[] = {"auth",   "client",  "discard", "exec",   "hello",
                                               "multi",  "ping",    "reset",   "scan",   "script",
                                               "select", "unwatch", "watch",   "evalsha"};
  return std::ranges::find(names, name) != std::end(names);
}

/// Where the words begin that the proxy takes apart, so many at a time; 0: it sends them together.
struct Parts {
  std::size_t from = 0, step = 1;
};
Parts parts_of(std::string_view name) {
  static constexpr std::string_view cut_up[] = {"mget", "del", "unlink", "touch", "exists"};
  if (name == "mset") return {1, 2};
  if (name == "pubsub") return {2, 1};
  const bool is_cut_up = std::ranges::find(cut_up, name) != std::end(cut_up);
  return {is_cut_up || name.ends_with("subscribe") ? 1U : 0U, 1};
}

void append_deeds(Deeds& deeds, std::vector<std::string> words) {
  for (auto& c : words[0]) c = resp::lower(c);
  const auto name = std::string_view{words[0]}.substr(1, words[0].size() - 2);
  if (is_of_a_session(name) || name.ends_with("unsubscribe")) return;
  const auto [from, step] = parts_of(name);
  const auto whole = from == 0 || words.size() <= from ? words.size() : from;
  std::string start;
  for (std::size_t at = 0; at < whole; ++at) start += words[at] + ' ';
  if (whole == words.size()) deeds.push_back(start);
  for (auto at = whole; at < words.size(); at += step) {
    auto deed = start;
    for (auto word = at; word < std::min(at + step, words.size()); ++word)
      deed += words[word] + ' ';
    deeds.push_back(std::move(deed));
  }
}

class RedisTongue final : public TongueOf<RedisServer> {
 public:
  explicit RedisTongue(bool strict) : TongueOf(strict) {
    proxy::PoolSettings settings;
    settings.redis = true;
    settings.servers.resize(servers_.size());
    if (strict) settings.compat = proxy::Compat::strict;
    protocol_ = proxy::make_redis_protocol(settings);
  }

  void start_servers() override;
  PoolLines pool() const override;
  std::vector<Question> fixture(std::size_t canaries, std::size_t clients) const override;
  std::string hostile_request(Random& random) const override { return redis_request(random); }
  Question sentinel(std::size_t, std::uint64_t token) const override {
    const auto text = fmt::format("sentinel:{}", token);
    if (strict_)
      return {encoded({"SETEX", text, "60", text}) + encoded({"GET", text}),
              "+OK\r\n" + bulk(text)};
    return {encoded({"RESET"}) + encoded({"ECHO", text}), "+RESET\r\n" + bulk(text)};
  }
  Question question(std::size_t canary, Random& random) const override;
  Understanding understand(std::string_view bytes) override;
  Deeds executed() override;
  Deeds forbidden() override;

 private:
  void note(Understanding& all, proxy::Words words);
  static std::size_t complete(std::string& bytes, std::size_t missing);

  std::array<std::optional<Wire>, server_count> monitors_;
};

void RedisTongue::start_servers() {
  for (std::size_t at = 0; at < servers_.size(); ++at) {
    monitors_[at].reset();
    servers_[at].reset();
    servers_[at].emplace(std::vector<std::string>{"proto-max-bulk-len 1mb"});
    monitors_[at].emplace(servers_[at]->port());
    monitors_[at]->queue("MONITOR\r\n");
  }
}

PoolLines RedisTongue::pool() const {
  std::vector<std::uint16_t> ports;
  for (const auto& server : servers_) ports.push_back(server->port());
  auto lines = redis_pool(ports);
  if (strict_) lines.insert(lines.begin(), "compat: strict");
  return {lines};
}

std::vector<Question> RedisTongue::fixture(std::size_t canaries, std::size_t) const {
  std::vector<Question> asked;
  for (std::size_t canary = 0; canary < canaries; ++canary)
    for (std::size_t place = 0; place < keys_of_canary; ++place) {
      const auto name = canary_key(canary, place);
      asked.push_back({encoded({"SET", name, "value of " + name}), "+OK\r\n"});
    }
  for (const auto* const stream : {"h:x0", "h:x1"})
    for (const auto group : group_names) {
      if (strict_) break;  // twemproxy knows no streams
      asked.push_back({encoded({"XGROUP", "CREATE", stream, group, "$", "MKSTREAM"}), "+OK\r\n"});
    }
  asked.push_back({encoded({"RPUSH", "h:l0", "1", "2"}), ":2\r\n"});
  asked.push_back({encoded({"SADD", "h:e0", "1", "2"}), ":2\r\n"});
  asked.push_back({encoded({"ZADD", "h:z0", "1", "a"}), ":1\r\n"});
  asked.push_back({encoded({"HSET", "h:m0", "a", "1"}), ":1\r\n"});
  asked.push_back({encoded({"SET", "h:s0", "5"}), "+OK\r\n"});
  return asked;
}

Question RedisTongue::question(std::size_t canary, Random& random) const {
  const auto name = canary_key(canary, up_to(random, keys_of_canary - 1));
  const auto other = canary_key(canary, up_to(random, keys_of_canary - 1));
  const auto value = "value of " + name;
  const std::string null = "$-1\r\n";
  switch (up_to(random, strict_ ? 2 : 5)) {
    case 0: {
      const auto also = bulk("value of " + other);
      return {encoded({"MGET", name, other}),
              "*2\r\n" + bulk(value) + also,
              {"*2\r\n" + null + also, "*2\r\n" + bulk(value) + null, "*2\r\n" + null + null}};
    }
    case 1: return {encoded({"SET", name, value}), "+OK\r\n"};
    case 2: return {encoded({"EVAL", "return KEYS[1]", "1", name}), bulk(name)};
    case 3: return {"get " + name + "\r\n", bulk(value), {null}};
    default: return {encoded({"GET", name}), bulk(value), {null}};
  }
}

void RedisTongue::note(Understanding& all, proxy::Words words) {
  const auto plan = protocol_->plan(words);
  all.ends = plan.route == proxy::Route::close;
  ++all.most;
  ++all.least;
  switch (plan.verb) {
    case SessionVerb::client:
    case SessionVerb::subscribe:
    case SessionVerb::unsubscribe:
    case SessionVerb::psubscribe:
    case SessionVerb::punsubscribe:
    case SessionVerb::ssubscribe:
    case SessionVerb::sunsubscribe: all.is_counted = false; break;
    case SessionVerb::blocking: all.may_wait = true; break;
    default: break;
  }
  if (plan.route == proxy::Route::refused || plan.route == proxy::Route::local || all.ends) return;
  std::vector<std::string> texts;
  for (const auto word : words) texts.push_back(quoted(word));
  const bool is_everywhere = plan.route == proxy::Route::every || !all.is_counted;
  for (auto left = is_everywhere ? servers_.size() : 1; left > 0; --left)
    append_deeds(all.meant, texts);
}

/// Makes a request whole that lacks at least `missing` bytes, or brings it nearer to that.
std::size_t RedisTongue::complete(std::string& bytes, std::size_t missing) {
  const auto before = bytes.size();
  if (missing > 1) {
    bytes.append(missing - 2, 'd');
    bytes += "\r\n";
  } else if (bytes.ends_with('\n') && bytes.front() == '*') {
    bytes += "$1\r\nx\r\n";
  } else {
    bytes += bytes.ends_with('\r') ? "\n" : "\r\n";
  }
  return bytes.size() - before;
}

Understanding RedisTongue::understand(std::string_view bytes) {
  Understanding all;
  const auto reader = protocol_->request_reader();
  std::string rest{bytes};
  while (!rest.empty() && !all.ends) {
    const auto state = reader->read(rest);
    if (state == proxy::RequestReader::State::complete) {
      if (!reader->words().empty()) note(all, reader->words());
      rest.erase(0, reader->size());
    } else if (state == proxy::RequestReader::State::bad) {
      all.ends = true;
      ++all.most;
    } else if (reader->missing() + all.completion.size() > longest_completion) {
      all.may_wait = true;
      return all;
    } else {
      const auto size = complete(rest, reader->missing());
      all.completion += rest.substr(rest.size() - size);
    }
  }
  return all;
}

Deeds RedisTongue::executed() {
  Deeds deeds;
  for (auto& monitor : monitors_) {
    Wire* const wire = &*monitor;
    auto& input = wire->input();
    for (auto size = input.size() + 1; size != input.size();) {
      size = input.size();
      Wire::turn({&wire, 1}, 0);
    }
    std::size_t from = 0;
    for (std::size_t end; (end = input.find("\r\n", from)) != std::string::npos; from = end + 2) {
      const auto line = std::string_view{input}.substr(from, end - from);
      if (line.find("canary:") != std::string_view::npos ||
          line.find("sentinel:") != std::string_view::npos || line.find(" lua] ") < 40)
        continue;
      if (auto words = quoted_words(line); !words.empty()) append_deeds(deeds, std::move(words));
    }
    input.erase(0, from);
  }
  return deeds;
}

Deeds RedisTongue::forbidden() {
  Deeds names;
  for (auto& server : servers_) {
    PlainClient client{server->port()};
    const auto text = client.command({"INFO", "commandstats"}).as_text();
    for (const auto& spec : resp::all_commands()) {
      const auto route = proxy::route_of(spec).value_or(proxy::RedisRoute{});
      const bool is_free = route.route != proxy::Route::refused && !route.needs_consent;
      if (is_free || spec.name == "monitor") continue;
      if (text.find(fmt::format("cmdstat_{}:", spec.name)) != std::string::npos)
        names.emplace_back(spec.name);
    }
  }
  return names;
}

}  // namespace

std::unique_ptr<Tongue> make_redis_tongue(bool strict) {
  return std::make_unique<RedisTongue>(strict);
}

}  // namespace sluice::test
