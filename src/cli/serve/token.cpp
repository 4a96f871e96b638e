#include <fmt/format.h>

#include <memory>

#include "base/instant.hpp"
#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/serve/commands.hpp"
#include "server/buyers.hpp"
#include "server/shop_keys.hpp"

namespace sluice::cli {
namespace {

struct KeyArgs {
  std::string id;
  std::string scopes;
};

int print_key(const KeyArgs& args, bool json) {
  const auto made = server::make_shop_key(args.id, server::scopes_of(args.scopes));
  if (json) {
    put("{}\n", Json::object({{"ok", true}, {"key", made.key}, {"line", made.line}}).text());
    return exit_ok;
  }
  put("The key; it is shown once, keep it where nobody else reads it:\n  {}\n"
      "The line for the file of --shop-keys:\n  {}\n",
      made.key, made.line);
  return exit_ok;
}

struct TokenArgs {
  std::string keys_file;
  std::string buyer;
  std::string sale = "*";
  std::chrono::milliseconds lifetime{std::chrono::hours{1}};
};

int print_token(const TokenArgs& args, bool json) {
  if (args.lifetime <= std::chrono::milliseconds{0})
    throw Error{Errc::bad_argument, "--for: a token is good for some time: 15m, 1h"};
  const auto keys = TokenKeys::load(args.keys_file);
  const auto expires = system_clock().wall() + args.lifetime;
  const auto token = server::buyer_token(keys, args.buyer, args.sale, expires);
  if (json)
    put("{}\n",
        Json::object({{"ok", true}, {"token", token}, {"expires", to_text(expires)}}).text());
  else
    put("{}\n", token);
  return exit_ok;
}

}  // namespace

Command token_command(const bool& json) {
  const auto args = std::make_shared<TokenArgs>();
  return {
      .name = "token",
      .summary = "Sign a token for a buyer, as a shop's own login would",
      .options = {{"--keys", "FILE", "The keys; the first one signs", into(args->keys_file), true},
                  {"--buyer", "NAME", "Whose it is", into(args->buyer), true},
                  {"--sale", "NAME", "The sale it is good for; *: all", into(args->sale)},
                  {"--for", "TIME", "How long it is good", into(args->lifetime)}},
      .action = [args, &json] { return print_token(*args, json); }};
}

Command key_command(const bool& json) {
  const auto args = std::make_shared<KeyArgs>();
  return {.name = "key",
          .summary = "Make a key for an operator, or for a program of the shop",
          .options = {{"--id", "NAME", "Its name in journals", into(args->id), true},
                      {"--scopes", "SCOPE,...",
                       "What it is good for: orders (to read, cancel and refund any), operate (the "
                       "console), read (to see what the console shows), tools (locks, numbers, "
                       "ids, Bloom filters)",
                       into(args->scopes), true}},
          .action = [args, &json] { return print_key(*args, json); }};
}

}  // namespace sluice::cli
