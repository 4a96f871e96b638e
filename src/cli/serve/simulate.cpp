#include <fmt/format.h>

#include <memory>

#include "base/secret_file.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/serve/commands.hpp"
#include "server/simulated_provider.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

struct SimulateArgs {
  std::string name = "acme";
  std::string secrets_file;
  std::string service = "http://127.0.0.1:8080";
  std::string listen = "127.0.0.1:8082";
  std::string habits = "pay";
  std::chrono::milliseconds delay{200};
  std::chrono::milliseconds late{60'000};
  std::uint32_t refunds_fail = 0;
  std::string shop_key_file;
};

/// What signs payments for everybody who asks is no server for others.
net::Endpoint own_endpoint_of(const std::string& word) {
  const auto endpoint = net::read_endpoint(word);
  if (net::is_of_this_machine(endpoint)) return endpoint;
  throw Error{Errc::bad_argument,
              fmt::format("--listen {}: whoever reaches it could pay what he likes with money that "
                          "there is not; it listens on this machine alone",
                          word)};
}

std::string shop_key_of(const std::string& path) {
  constexpr std::string_view the_file = "the file of the shop's key";
  const auto lines = read_secret_file(the_file, path);
  if (lines.size() != 1 || !lines.front().text.starts_with("sk."))
    refuse_secret_file(the_file, path, "it has one line, the key as 'sluice serve key' shows it");
  return lines.front().text;
}

server::SimulatedProviderOptions options_of(const SimulateArgs& args) {
  server::check_http_url(args.service);
  server::SimulatedProviderOptions options;
  options.provider = std::make_shared<HmacPayments>(args.name, webhook_keys_of(args.secrets_file));
  options.payments = fmt::format("{}/v1/payments/{}", args.service, args.name);
  options.listen = own_endpoint_of(args.listen);
  options.habits = server::PayingHabits::of(args.habits);
  options.delay = args.delay;
  options.late = args.late;
  options.refunds_fail = args.refunds_fail;
  if (!args.shop_key_file.empty())
    options.shop = server::PaidShop{args.service, shop_key_of(args.shop_key_file)};
  return options;
}

int simulate(SimulateArgs args) {
  while (args.service.ends_with('/')) args.service.pop_back();
  const StopOnSignal stop;
  const server::SimulatedProvider provider{options_of(args)};
  const auto url = fmt::format("http://127.0.0.1:{}", provider.port());
  put("Simulated payments of '{}' on {}; no money moves\n"
      "  for the service  --payments {}={} --refunds {}={}/refund --allow-private-targets\n"
      "Try:\n"
      "  curl -s {}/pay -d '{{\"sale\":\"SALE\",\"order\":\"NUMBER\",\"amount\":500,\"currency\":"
      "\"CNY\"}}'\n"
      "  curl -s {}/state\n",
      args.name, url, args.name, args.secrets_file, args.name, url, url, url);
  flush_output();
  while (stop.sleep_for(1h)) {
  }
  put("{}\n", provider.state().text());
  return exit_ok;
}

}  // namespace

Command simulate_command() {
  const auto args = std::make_shared<SimulateArgs>();
  return {
      .name = "simulate-payments",
      .summary = "A payment provider without money, to try what is paid, late, twice or never",
      .options =
          {{"--secrets", "FILE", "The file of --payments: its secrets sign payments",
            into(args->secrets_file), true},
           {"--provider", "NAME", "Which provider it is", into(args->name)},
           {"--service", "URL", "Where 'sluice serve' is", into(args->service)},
           {"--behave", "HOW",
            "How buyers pay: pay, late, again (told five times), twice, wrong (another amount) or "
            "never; or parts, as in pay=90,late=5,never=5",
            into(args->habits)},
           {"--shop-key", "FILE",
            "Pay each new order of the service, found with this key of the scope orders",
            into(args->shop_key_file)},
           {"--delay", "TIME", "From paying until the service is told", into(args->delay)},
           {"--late", "TIME", "The same of a late payment", into(args->late)},
           {"--refunds-fail", "PERCENT",
            "So many attempts to refund fail; half of them after they were done",
            into(args->refunds_fail, 0, 100)},
           {"--listen", "ADDRESS", "HOST:PORT of this machine", into(args->listen)}},
      .action = [args] { return simulate(*args); }};
}

}  // namespace sluice::cli
