// Whom the service listens to about payments, and whom it tells.
#include <fmt/format.h>

#include <algorithm>

#include "base/secret_file.hpp"
#include "cli/serve/commands.hpp"

namespace sluice::cli {
namespace {

/// Who lists processes sees it, and an error would show it.
void refuse_secret(std::string_view word) {
  if (word.starts_with("whsec_"))
    throw Error{Errc::bad_argument,
                "a secret, whsec_..., stands where the name of a file belongs: put it into a file "
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

using Providers = std::vector<std::shared_ptr<const HmacPayments>>;

/// "acme=secrets": a provider whose webhooks are signed with the secrets of that file.
std::shared_ptr<const HmacPayments> provider_of(const std::string& word) {
  refuse_secret(word);
  const auto equals = word.find('=');
  if (equals == word.npos)
    throw Error{Errc::bad_argument,
                fmt::format("--payments '{}': write NAME=FILE; the file has the secret that the "
                            "provider gave you, whsec_...",
                            word)};
  return std::make_shared<HmacPayments>(word.substr(0, equals),
                                        webhook_keys_of(word.substr(equals + 1)));
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
                                const Providers& providers) {
  const auto equals = word.find('=');
  if (equals == word.npos)
    throw Error{Errc::bad_argument,
                fmt::format("--refunds '{}': write NAME=URL; NAME is one of --payments",
                            word.substr(0, 40))};
  const auto name = word.substr(0, equals);
  for (const auto& provider : providers)
    if (provider->name() == name)
      return {provider, target_of(args, "--refunds " + name, word.substr(equals + 1))};
  throw Error{Errc::bad_argument,
              fmt::format("--refunds {}: give --payments {}=FILE, too: refunds are signed with the "
                          "secrets of that file",
                          name, name)};
}

server::MessengerOptions messenger_of(const ServeArgs& args, const Providers& providers) {
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
      {"--refunds", "NAME=URL",
       "Send the refunds of this provider there, signed with its secrets; may be repeated",
       into(args.refunds)},
      {"--webhooks", "URL", "Send messages of what happens to orders there", into(args.webhooks)},
      {"--webhook-secrets", "FILE",
       "and the secrets that sign them, whsec_..., a line each, the newest first",
       into(args.webhook_secrets)},
      {"--allow-private-targets", "",
       "These URLs may lead to addresses that are not public, too: this machine, your own network",
       into(args.allows_private_targets)}};
}

Targets targets_of(const ServeArgs& args) {
  Providers providers;
  for (const auto& word : args.payments) {
    auto provider = provider_of(word);
    refuse_second("--payments", provider->name(),
                  std::ranges::any_of(providers, [&](const auto& other) {
                    return other->name() == provider->name();
                  }));
    providers.push_back(std::move(provider));
  }
  return {.providers = {providers.begin(), providers.end()},
          .messenger = messenger_of(args, providers)};
}

}  // namespace sluice::cli
