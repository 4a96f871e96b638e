// Whom the service listens to about payments, and whom it tells.
#include <fmt/format.h>

#include <algorithm>

#include "base/secret_file.hpp"
#include "cli/serve/commands.hpp"

namespace sluice::cli {
namespace {

bool is_secret_of_webhooks(std::string_view word) { return word.starts_with("whsec_"); }
/// Of Stripe: a secret or a restricted one.
bool is_api_key(std::string_view word) {
  return word.starts_with("sk_") || word.starts_with("rk_");
}

/// Who lists processes sees it, and an error would show it.
void refuse_secret(std::string_view word) {
  if (is_secret_of_webhooks(word) || is_api_key(word))
    throw Error{Errc::bad_argument,
                "a secret stands where the name of a file belongs: put it into a file "
                "that nobody else reads, and make a new one"};
}

}  // namespace

/// The secrets of webhooks, a line each.
WebhookKeys webhook_keys_of(const std::string& path) {
  constexpr std::string_view the_file = "the file of secrets";
  refuse_secret(path);
  std::vector<std::string> secrets;
  for (auto& line : read_secret_file(the_file, path)) secrets.push_back(std::move(line.text));
  try {
    return WebhookKeys{secrets};
  } catch (const Error& wrong) {
    refuse_secret_file(the_file, path, wrong.message());
  }
}

namespace {

using server::PaymentProviders;
using Provider = std::shared_ptr<const PaymentProvider>;

/// Of "acme=secrets" the name and the file.
std::pair<std::string, std::string> name_and_file(std::string_view option,
                                                  const std::string& word) {
  refuse_secret(word);
  const auto equals = word.find('=');
  if (equals == word.npos)
    throw Error{Errc::bad_argument,
                fmt::format("{} '{}': write NAME=FILE; the file has the secret that the provider "
                            "gave you, whsec_...",
                            option, word)};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

/// A provider whose webhooks are signed as Standard Webhooks has it.
Provider hmac_of(const std::string& word) {
  auto [name, path] = name_and_file("--payments", word);
  return std::make_shared<HmacPayments>(std::move(name), webhook_keys_of(path));
}

Provider stripe_of(const std::string& word) {
  constexpr std::string_view the_file = "the file of Stripe's secrets";
  auto [name, path] = name_and_file("--stripe", word);
  refuse_secret(path);
  std::vector<std::string> secrets;
  std::string api_key;
  for (auto& [number, line] : read_secret_file(the_file, path)) {
    if (!is_secret_of_webhooks(line) && !(is_api_key(line) && api_key.empty()))
      refuse_secret_file(the_file, path,
                         fmt::format("line {} is no signing secret, whsec_..., and not the one API "
                                     "key, sk_... or rk_...",
                                     number));
    is_api_key(line) ? api_key = std::move(line) : secrets.emplace_back(std::move(line));
  }
  try {
    return std::make_shared<StripePayments>(std::move(name), std::move(secrets),
                                            std::move(api_key));
  } catch (const Error& wrong) {
    refuse_secret_file(the_file, path, wrong.message());
  }
}

/// Of two of one name one would be ignored, or refunds be sent to both in turn, each of which gives
/// the money.
void refuse_second(std::string_view option, std::string_view name, bool is_there) {
  if (is_there) throw Error{Errc::bad_argument, fmt::format("{} {} is given twice", option, name)};
}

/// A URL to which something is sent.
std::string target_of(const ServeArgs& args, std::string_view option, const std::string& url) {
  try {
    server::check_http_url(url);
  } catch (const Error& wrong) {
    throw Error{Errc::bad_argument, fmt::format("{}: {}", option, wrong.message())};
  }
  if (!args.allows_private_targets && server::is_private_by_its_text(url))
    throw Error{Errc::bad_argument,
                fmt::format("{}: {} is not in the public internet; give --allow-private-targets "
                            "if that is meant",
                            option, server::origin_of(url))};
  return url;
}

/// "acme=https://...": where the provider, one of those whose payments are taken, takes refunds.
server::RefundTarget refunds_of(const ServeArgs& args, const std::string& word,
                                const PaymentProviders& providers) {
  const auto equals = word.find('=');
  if (equals == word.npos)
    throw Error{Errc::bad_argument,
                fmt::format("--refunds '{}': write NAME=URL; NAME is one of --payments or --stripe",
                            word.substr(0, 40))};
  const auto name = word.substr(0, equals);
  for (const auto& provider : providers)
    if (provider->name() == name) {
      (void)provider->refund({}, {});  // throws where it cannot be asked
      return {provider, target_of(args, "--refunds " + name, word.substr(equals + 1))};
    }
  throw Error{Errc::bad_argument,
              fmt::format("--refunds {}: give --payments {}=FILE, too: refunds are signed with the "
                          "secrets of that file",
                          name, name)};
}

server::MessengerOptions messenger_of(const ServeArgs& args, const PaymentProviders& providers) {
  server::MessengerOptions options;
  if (args.webhooks.empty() != args.webhook_secrets.empty())
    throw Error{Errc::bad_argument,
                "--webhooks and --webhook-secrets go together: give both, or neither"};
  if (!args.webhooks.empty())
    options.messages = server::MessageTarget{target_of(args, "--webhooks", args.webhooks),
                                             webhook_keys_of(args.webhook_secrets)};
  for (const auto& word : args.refunds) {
    auto target = refunds_of(args, word, providers);
    const auto& name = target.provider->name();
    refuse_second("--refunds", name, std::ranges::any_of(options.refunds, [&](const auto& other) {
                    return other.provider->name() == name;
                  }));
    options.refunds.push_back(std::move(target));
  }
  options.http.allows_private = args.allows_private_targets;
  return options;
}

}  // namespace

std::vector<Option> target_options(ServeArgs& args) {
  return {
      {"--payments", "NAME=FILE",
       "Take the payments of this provider at /v1/payments/NAME; the file has the secrets of its "
       "webhooks, whsec_..., the newest first; may be repeated",
       into(args.payments)},
      {"--stripe", "NAME=FILE",
       "The same of Stripe: the file has the signing secrets of its webhooks, whsec_..., and, for "
       "refunds, an API key, sk_... or rk_...; may be repeated",
       into(args.stripe)},
      {"--refunds", "NAME=URL",
       "Send the refunds of this provider there, signed with its secrets; of Stripe, "
       "https://api.stripe.com/v1/refunds; may be repeated",
       into(args.refunds)},
      {"--checkout", "URL",
       "Where a buyer pays: his order's page leads there, with the order and a token that says "
       "what is to pay",
       into(args.checkout)},
      {"--shop", "FILE",
       "Name and colours of the shop, and names, texts and pictures of its sales, as JSON",
       into(args.shop_file)},
      {"--texts", "FOLDER", "More languages of the pages for buyers, a file each, like fr.json",
       into(args.texts_folder)},
      {"--webhooks", "URL", "Send messages of what happens to orders there", into(args.webhooks)},
      {"--webhook-secrets", "FILE",
       "and the secrets that sign them, whsec_..., a line each, the newest first",
       into(args.webhook_secrets)},
      {"--allow-private-targets", "",
       "These URLs may lead to addresses that are not public, too: this machine, your own network",
       into(args.allows_private_targets)}};
}

Targets targets_of(const ServeArgs& args) {
  PaymentProviders providers;
  const auto add = [&](std::string_view option, Provider provider) {
    const auto is_there = std::ranges::any_of(
        providers, [&](const auto& other) { return other->name() == provider->name(); });
    refuse_second(option, provider->name(), is_there);
    providers.push_back(std::move(provider));
  };
  for (const auto& word : args.payments) add("--payments", hmac_of(word));
  for (const auto& word : args.stripe) add("--stripe", stripe_of(word));
  auto messenger = messenger_of(args, providers);
  return {.providers = std::move(providers), .messenger = std::move(messenger)};
}

}  // namespace sluice::cli
