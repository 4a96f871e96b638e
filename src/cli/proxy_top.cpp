#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <condition_variable>
#include <mutex>

#include "cli/exit_code.hpp"
#include "cli/proxy_admin.hpp"
#include "cli/signals.hpp"
#include "proxy/process/admin_client.hpp"
#include "proxy/watch/top.hpp"

namespace sluice::cli {
namespace {

struct TopArgs {
  AdminAddress at;
  double seconds = 2;
  std::size_t keys = 5;
  bool once = false;
};

Value ask(proxy::AdminClient& client, std::initializer_list<std::string_view> words) {
  Value reply = client.ask({words.begin(), words.size()});
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

double number(const Value& value) {
  const auto& text = value.as_text();
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

std::vector<proxy::HotKey> hot_keys(proxy::AdminClient& client, std::size_t most) {
  const Value rows = ask(client, {"HOTKEYS", std::to_string(most)});
  std::vector<proxy::HotKey> keys;
  for (const auto& row : rows.as_items()) {
    const auto& items = row.as_items();
    keys.push_back({items.at(0).as_text(), number(items.at(1)), number(items.at(2))});
  }
  return keys;
}

void draw(const proxy::TopFrame& frame, bool json, bool terminal) {
  constexpr std::string_view home_and_clear = "\x1b[H\x1b[2J";
  if (json) {
    fmt::print("{}\n", proxy::top_json(frame));
  } else {
    fmt::print("{}{}", terminal ? home_and_clear : "", proxy::top_text(frame));
  }
  std::fflush(stdout);
}

/// False: a signal says to end.
bool wait(const std::stop_token& stop, double seconds) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  never.wait_for(lock, stop, std::chrono::duration<double>{seconds}, [] { return false; });
  return !stop.stop_requested();
}

int run(const Globals& globals, const TopArgs& args) {
  const StopOnSignal stop;
  proxy::AdminClient client{args.at.get()};
  const bool terminal = !args.once && ::isatty(STDOUT_FILENO) == 1;
  std::string before = ask(client, {"STATS"}).as_text();
  while (wait(stop.token(), args.seconds)) {
    std::string now = ask(client, {"STATS"}).as_text();
    auto frame = proxy::top_frame(before, now);
    frame.hot_keys = hot_keys(client, args.keys);
    draw(frame, globals.json, terminal);
    if (args.once) break;
    before = std::move(now);
  }
  return exit_ok;
}

}  // namespace

void add_proxy_top(CLI::App& proxy, const Globals& globals, Action& action) {
  auto* const command = proxy.add_subcommand(
      "top", "Live: requests, errors, latencies and connections of pools and servers, hot keys");
  const auto args = std::make_shared<TopArgs>();
  args->at.add_options(*command);
  command->add_option("-d,--delay", args->seconds, "Seconds between two looks")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("-k,--keys", args->keys, "How many hot keys")
      ->capture_default_str()
      ->check(CLI::Range(0, 100));
  command->add_flag("--once", args->once, "One look over --delay seconds, then end");
  command->callback(
      [&globals, &action, args] { action = [&globals, args] { return run(globals, *args); }; });
}

}  // namespace sluice::cli
