/// Lines of memcached: what its -vv says that it has executed is held against what was meant.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>

#include "proxy/memcached/commands.hpp"
#include "proxy/memcached/readers.hpp"
#include "proxy/storm/mutation.hpp"
#include "proxy/storm/tongue.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"

namespace sluice::test {
namespace {

using proxy::MemcachedCommand;
using enum proxy::MemcachedKind;
using Lines = std::vector<std::string>;

constexpr std::string_view strange_memcached_words[] = {
    "noreply", "noreply", "q",  "k",   "v",         "b",  "h:1",  "h:2", "get",    "set", "ms",
    "",        "0",       "T0", "N9",  "I",         "S5", "MS",   "MA",  "Oq",     "c",   "E1",
    "C1",      "F5",      "t",  "END", "flush_all", "me", "quit", "mn",  "noreplY"};

std::string key(Random& random) {
  static constexpr std::string_view names[] = {"h:0", "h:1", "h:2",     "h:3", "n:0",
                                               "n:1", "n:2", "noreply", "q",   "get",
                                               "0",   "b",   "aDox",    "bjox"};
  static constexpr std::size_t longest = 250;
  if (one_in(random, 40)) return std::string(longest - 1 + up_to(random, 2), 'k');
  return std::string{one_of(names, random)};
}

std::string memcached_number(Random& random) {
  return one_in(random, 6) ? odd_number(random) : fmt::format("{}", up_to(random, 20));
}

std::string flag(Random& random) {
  static constexpr std::string_view flags[] = {
      "k",  "v",  "t",  "s",  "f",  "c",  "h",  "l",  "q",  "b",     "T0", "T9",
      "N0", "R9", "Oa", "F7", "C1", "I",  "x",  "MS", "MA", "ME",    "MI", "MD",
      "J5", "D2", "E9", "a",  "P1", "Lx", "qq", "q0", "k:", "Oqqqq", "S3"};
  return std::string{one_of(flags, random)};
}

/// Data may be commands, which a server that does not take them as data would execute.
std::string data(Random& random) {
  static constexpr std::string_view commands[] = {"flush_all",
                                                  "flush_all\r\nget h:1",
                                                  "get h:1",
                                                  "mn",
                                                  "shutdown",
                                                  "get n:1\r\n",
                                                  "\r\n",
                                                  "",
                                                  "verbosity 1",
                                                  "5",
                                                  "x",
                                                  "quit",
                                                  "set h:1 0 0 1\r\nx",
                                                  "0",
                                                  "18446744073709551615"};
  static constexpr std::size_t sizes[] = {5, 100, 2046, 2048, 8192, 16384, 40000, 65536};
  constexpr std::size_t too_large = 525'000;
  if (one_in(random, 500)) return std::string(too_large, 'd');
  if (!one_in(random, 8)) return std::string{one_of(commands, random)};
  return std::string(one_of(sizes, random), one_in(random, 2) ? 'd' : '\0');
}

/// A line that memcached takes, without its end.
std::vector<std::string> right_words(const MemcachedCommand& command, std::size_t size,
                                     Random& random) {
  std::vector<std::string> words{std::string{command.name}};
  const auto add = [&](std::string word) { words.push_back(std::move(word)); };
  static constexpr std::size_t flag_counts[] = {0, 1, 1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 24, 25};
  const bool is_meta = command.kind == meta_get || command.kind == meta_set ||
                       command.kind == meta_change || command.kind == meta_debug;
  if (command.key_at == 2) add(memcached_number(random));
  if (command.key_at != 0) add(key(random));
  if (command.kind == get || command.kind == get_and_touch)
    for (auto more = up_to(random, 3); more > 0; --more) add(key(random));
  if (command.kind == store) {
    add(memcached_number(random));
    add(one_in(random, 8) ? memcached_number(random) : "0");
  }
  if (command.has_data()) add(fmt::format("{}", size));
  if (command.name == "cas" || (command.kind == change && command.least > 2))
    add(memcached_number(random));
  if (is_meta)
    for (auto more = one_of(flag_counts, random); more > 0; --more) add(flag(random));
  if (command.kind == all_stats || command.kind == all_ok || command.kind == never)
    for (auto more = up_to(random, 2); more > 0; --more) add(memcached_number(random));
  if (command.silent_from != 0 && one_in(random, 3)) add("noreply");
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// What a line does, as a text that is the same however the proxy has written it anew: without
// noreply and quiet flags, and one text for each key of a get.

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const auto word = line.substr(0, line.find(' '));
    if (!word.empty()) words.push_back(word);
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return words;
}

void append_deeds(Lines& deeds, proxy::Words line) {
  const auto* const command = proxy::find_memcached_command(line[0]);
  if (command != nullptr && (command->kind == get || command->kind == get_and_touch)) {
    std::string start{line[0]};
    if (command->key_at == 2 && line.size() > 1) start += fmt::format(" {}", line[1]);
    for (std::size_t at = command->key_at; at < line.size(); ++at)
      deeds.push_back(fmt::format("{} {}", start, line[at]));
    return;
  }
  std::string deed{line[0]};
  for (std::size_t at = 1; at < line.size(); ++at)
    if (line[at] != "noreply" && !(at > 1 && line[0].starts_with('m') && line[at].starts_with('q')))
      deed += fmt::format(" {}", line[at]);
  deeds.push_back(deed);
}

bool is_of_the_house(std::string_view deed) {
  return deed.find(" canary:") != std::string_view::npos ||
         deed.find(" sentinel:") != std::string_view::npos || deed == "version" || deed == "stats";
}

class MemcachedTongue final : public TongueOf<Memcached> {
 public:
  explicit MemcachedTongue(bool strict) : TongueOf(strict) {
    proxy::PoolSettings settings;
    if (strict) settings.compat = proxy::Compat::strict;
    protocol_ = proxy::make_memcached_protocol(settings);
  }

  void start_servers() override {
    for (auto& server : servers_) server.reset();
    logs_ = {};
    // With smaller items memcached 1.6.18 crashes.
    for (auto& server : servers_) server.emplace(Lines{"-vv", "-I", "512k"});
  }
  PoolLines pool() const override {
    std::vector<std::uint16_t> ports;
    for (const auto& server : servers_) ports.push_back(server->port());
    auto lines = memcached_pool(ports);
    if (strict_) lines.insert(lines.begin(), "compat: strict");
    return {lines};
  }

  std::vector<Question> fixture(std::size_t canaries, std::size_t clients) const override {
    std::vector<Question> asked;
    const auto set = [&](const std::string& name, const std::string& value) {
      asked.push_back(
          {fmt::format("set {} 0 0 {}\r\n{}\r\n", name, value.size(), value), "STORED\r\n"});
    };
    for (std::size_t canary = 0; canary < canaries; ++canary)
      for (std::size_t place = 0; place < keys_of_canary; ++place)
        set(canary_key(canary, place), "value of " + canary_key(canary, place));
    for (std::size_t client = 0; client < clients; ++client)
      set(fmt::format("sentinel:{}", client), "here");
    for (const auto* const name : {"n:0", "n:1", "n:2"}) set(name, "5");
    return asked;
  }

  std::string hostile_request(Random& random) const override;

  Question sentinel(std::size_t client, std::uint64_t token) const override {
    if (strict_) {
      const auto name = fmt::format("sentinel:{}", client), value = fmt::format("{}", token);
      return {fmt::format("set {0} 0 0 {1}\r\n{2}\r\nget {0}\r\n", name, value.size(), value),
              fmt::format("STORED\r\nVALUE {} 0 {}\r\n{}\r\nEND\r\n", name, value.size(), value)};
    }
    return {fmt::format("mg sentinel:{} v O{}\r\n", client, token),
            fmt::format("VA 4 O{}\r\nhere\r\n", token)};
  }

  Question question(std::size_t canary, Random& random) const override;
  Understanding understand(std::string_view bytes) override;
  Lines executed() override;
  Lines forbidden() override { return {}; }  // executed() shows all

 private:
  struct Log {
    std::streamoff read = 0;
    std::string rest;  // the beginning of a line
  };

  static std::string value_block(const std::string& name) {
    const auto value = "value of " + name;
    return fmt::format("VALUE {} 0 {}\r\n{}\r\n", name, value.size(), value);
  }
  void note(Understanding& all, proxy::Words words);
  void read_log(Lines& deeds, std::size_t server);

  std::array<Log, server_count> logs_;
};

std::string MemcachedTongue::hostile_request(Random& random) const {
  const auto& command = one_of(proxy::memcached_commands(), random);
  const auto block = data(random);
  auto words = right_words(command, block.size(), random);
  if (one_in(random, 2)) mutate_words(words, strange_memcached_words, random);
  auto bytes = joined(words) + "\r\n";
  if (one_in(random, 3)) mutate_bytes(bytes, random);
  if (command.has_data() && !one_in(random, 30)) bytes += block + "\r\n";
  return bytes;
}

Question MemcachedTongue::question(std::size_t canary, Random& random) const {
  const auto name = canary_key(canary, up_to(random, keys_of_canary - 1));
  const auto other = canary_key(canary, up_to(random, keys_of_canary - 1));
  const auto value = "value of " + name;
  switch (up_to(random, strict_ ? 1 : 4)) {
    case 0:
      return {fmt::format("get {} {}\r\n", name, other),
              value_block(name) + value_block(other) + "END\r\n",
              {"END\r\n", value_block(name) + "END\r\n", value_block(other) + "END\r\n"}};
    case 1:
      return {fmt::format("set {} 0 0 {}\r\n{}\r\n", name, value.size(), value), "STORED\r\n"};
    case 2:
      return {fmt::format("mg {} k v O{}\r\n", name, canary),
              fmt::format("VA {} k{} O{}\r\n{}\r\n", value.size(), name, canary, value),
              {"EN\r\n", fmt::format("EN k{} O{}\r\n", name, canary)}};
    default: return {fmt::format("get {}\r\n", name), value_block(name) + "END\r\n", {"END\r\n"}};
  }
}

void MemcachedTongue::note(Understanding& all, proxy::Words words) {
  const auto plan = protocol_->plan(words);
  all.ends = plan.route == proxy::Route::close;
  if (all.ends) return;
  const bool answers_here =
      plan.route == proxy::Route::refused || plan.route == proxy::Route::local;
  const bool is_due = answers_here ? !plan.reply.empty() : plan.expects_reply;
  all.most += is_due ? 1 : 0;
  all.least += is_due && plan.quiet == proxy::Quiet::no ? 1 : 0;
  if (answers_here) return;
  const auto* const command = proxy::find_memcached_command(words[0]);
  const bool has_data = command != nullptr && command->has_data();
  append_deeds(all.meant, has_data ? words.first(words.size() - 1) : words);
}

Understanding MemcachedTongue::understand(std::string_view bytes) {
  Understanding all;
  const auto reader = protocol_->request_reader();
  std::string rest{bytes};
  while (!rest.empty() && !all.ends) {
    const auto state = reader->read(rest);
    if (state == proxy::RequestReader::State::complete) {
      note(all, reader->words());
      rest.erase(0, reader->size());
    } else if (state == proxy::RequestReader::State::bad) {
      all.ends = true;
      ++all.most;
    } else {
      const bool lacks_line = rest.find('\n') == std::string::npos;
      const auto missing = lacks_line ? 2 : reader->missing();
      if (missing > longest_completion) {
        all.may_wait = true;
        return all;
      }
      std::string more(missing, 'd');
      more.back() = '\n';
      if (missing > 1) more[missing - 2] = '\r';
      all.completion += more;
      rest += more;
    }
  }
  return all;
}

/// "<30 get a": the connection's number and the line, which ends for memcached at a NUL.
void MemcachedTongue::read_log(Lines& deeds, std::size_t server) {
  auto& log = logs_[server];
  std::ifstream file{servers_[server]->output(), std::ios::binary};
  file.seekg(log.read);
  const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  log.read += static_cast<std::streamoff>(bytes.size());
  log.rest += bytes;
  std::size_t from = 0;
  for (std::size_t end; (end = log.rest.find('\n', from)) != std::string::npos; from = end + 1) {
    const auto line = std::string_view{log.rest}.substr(from, end - from);
    if (!line.starts_with('<')) continue;
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto words = split(line.substr(blank + 1));
    if (words.empty() || (words.size() > 2 && words[0] == "new" && words[2] == "client") ||
        (words.size() == 2 && words[0] == "connection") || words[0] == "server")
      continue;
    append_deeds(deeds, words);
  }
  log.rest.erase(0, from);
}

Lines MemcachedTongue::executed() {
  Lines deeds;
  for (std::size_t server = 0; server < servers_.size(); ++server) read_log(deeds, server);
  std::erase_if(deeds, [](const std::string& deed) { return is_of_the_house(deed); });
  return deeds;
}

}  // namespace

std::unique_ptr<Tongue> make_memcached_tongue(bool strict) {
  return std::make_unique<MemcachedTongue>(strict);
}

}  // namespace sluice::test
