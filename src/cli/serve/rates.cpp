#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/integer.hpp"
#include "cli/serve/commands.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {
namespace {

constexpr std::int64_t largest_quota = 1'000'000;
constexpr std::int64_t longest_window = 3600;

/// "20/10": 20 in 10 seconds.
server::Rate rate_of(std::string_view option, const std::string& word) {
  if (word == "0") return {};
  const auto slash = word.find('/');
  const auto quota = parse_integer<std::int64_t>(word.substr(0, slash));
  const auto window =
      slash == word.npos ? std::nullopt : parse_integer<std::int64_t>(word.substr(slash + 1));
  if (!quota || !window || *quota < 1 || *quota > largest_quota || *window < 1 ||
      *window > longest_window)
    throw Error{Errc::bad_argument,
                fmt::format("{} '{}': write N/SECONDS, like 20/10 for 20 requests in 10 seconds, "
                            "with at most {} in {} seconds; 0 for as many as they like",
                            option, word, largest_quota, longest_window)};
  return {.quota = *quota, .window = std::chrono::seconds{*window}};
}

}  // namespace

std::vector<Option> client_options(ServeArgs& args) {
  return {
      {"--trusted", "NETWORK",
       "A proxy in front, whose X-Forwarded-For is believed; unix: by a unix socket; may be "
       "repeated",
       into(args.trusted)},
      {"--proxy-protocol", "NETWORK",
       "A balancer in front that begins each connection with the PROXY protocol, version 2; unix: "
       "by a unix socket; may be repeated",
       into(args.proxy_protocol)},
      {"--buyer-rate", "N/SECONDS",
       "A buyer may ask so often in so many seconds, of each process; 0: as often as he likes",
       into(args.buyer_rate)},
      {"--client-rate", "N/SECONDS",
       "The same of an IPv4 address or an IPv6 /64; without it 5000/10 where there are --keys",
       into(args.client_rate)}};
}

/// Where buyers are believed, one address asks for all of them: the shop's.
server::RateLimitOptions rates_of(const ServeArgs& args) {
  const std::string of_clients = args.keys_file.empty() ? "0" : "5000/10";
  return {
      .buyer = rate_of("--buyer-rate", args.buyer_rate),
      .client = rate_of("--client-rate", args.client_rate.empty() ? of_clients : args.client_rate)};
}

}  // namespace sluice::cli
