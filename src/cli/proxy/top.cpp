#include "proxy/watch/top.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/integer.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/process/admin_client.hpp"

namespace sluice::cli {
namespace {

using namespace proxy::watch;
using proxy::process::AdminClient;

struct TopArgs {
  AdminAddress at;
  double seconds = 2;
  std::size_t keys = 5;
  bool once = false;
};

Value ask(AdminClient& client, std::initializer_list<std::string_view> words) {
  Value reply = client.ask({words.begin(), words.size()});
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

double number(const Value& value) { return leading_number<double>(value.as_text()); }

std::vector<HotKey> hot_keys(AdminClient& client, std::size_t most) {
  const Value rows = ask(client, {"HOTKEYS", std::to_string(most)});
  std::vector<HotKey> keys;
  for (const auto& row : rows.as_items()) {
    const auto& items = row.as_items();
    keys.push_back({items.at(0).as_text(), number(items.at(1)), number(items.at(2)),
                    items.size() > 3 ? number(items.at(3)) : 0});
  }
  return keys;
}

/// False: nobody can read it.
bool draw(const TopFrame& frame, bool json, bool terminal) {
  constexpr std::string_view home_and_clear = "\x1b[H\x1b[2J";
  if (json) {
    put("{}\n", top_json(frame));
  } else {
    put("{}{}", terminal ? home_and_clear : "", top_text(frame));
  }
  return flush_output();
}

int run(bool json, const TopArgs& args) {
  const StopOnSignal stop;
  AdminClient client{args.at.get()};
  const bool terminal = !args.once && ::isatty(STDOUT_FILENO) == 1;
  std::string before = ask(client, {"STATS"}).as_text();
  const auto delay = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>{args.seconds});
  while (stop.sleep_for(delay)) {
    std::string now = ask(client, {"STATS"}).as_text();
    auto frame = top_frame(before, now);
    frame.hot_keys = hot_keys(client, args.keys);
    if (!draw(frame, json, terminal) || args.once) break;
    before = std::move(now);
  }
  return exit_ok;
}

}  // namespace

Command top_command(const bool& json) {
  const auto args = std::make_shared<TopArgs>();
  Command command{
      .name = "top",
      .summary = "Live: requests, errors, latencies and state of pools and servers, hot keys",
      .options = {{"-d, --delay", "SECONDS", "Between two looks", into(args->seconds, 0.1, 3600.0)},
                  {"-k, --keys", "N", "How many hot keys", into(args->keys, 0, 100)},
                  {"--once", "", "One look over --delay seconds, then end", into(args->once)}},
      .action = [&json, args] { return run(json, *args); }};
  args->at.add_options(command);
  return command;
}

}  // namespace sluice::cli
