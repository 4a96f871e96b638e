/// What the program sluice-serve does.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line/command.hpp"
#include "net/endpoint.hpp"
#include "net/tls.hpp"
#include "server/messenger.hpp"
#include "server/payments_api.hpp"
#include "server/rate_limits.hpp"
#include "sluice/webhook.hpp"

namespace sluice::cli {

struct ServeArgs {
  std::string store;                 ///< empty: $SLUICE_STORE, or the embedded engine in `data`
  std::string data = "sluice-data";  ///< what is not given lies there
  std::string orders;                ///< empty: SQLite in `data`
  std::string sales_file;
  std::vector<std::string> sales;  ///< "maotai=100", "maotai=100000/8"; "maotai" is there
  bool all = false;                ///< serves what store and database know beside these
  bool no_sales = false;
  std::vector<std::string> payments;  ///< "acme=FILE"
  std::vector<std::string> stripe;    ///< "stripe=FILE"
  std::string webhooks;               ///< a URL
  std::string webhook_secrets;
  std::vector<std::string> refunds;  ///< "acme=URL"
  std::string checkout;              ///< a URL
  std::string shop_file;             ///< name, colours, texts and pictures for buyers
  std::string texts_folder;          ///< languages of the pages beside ours
  bool allows_private_targets = false;
  std::vector<std::string> rooms;  ///< "maotai=50/200"
  std::string listen = "127.0.0.1:8080";
  std::string health = "127.0.0.1:8081";
  std::string keys_file;
  std::string shop_keys_file;
  std::vector<std::string> proxies;
  bool believes_buyers = false;
  bool has_local_operator = false;
  net::TlsFiles tls;
  std::vector<std::string> trusted;
  std::vector<std::string> proxy_protocol;
  std::string buyer_rate = "100/10";
  std::string client_rate;  ///< empty: none where buyers are believed, else "5000/10"
  std::size_t loops = 0;
  std::chrono::milliseconds stop_within{20'000};
  std::chrono::milliseconds notice{5'000};
  std::chrono::milliseconds claim_after{0};  ///< 0: as suits the store
  bool json = false;
};

std::vector<Option> serve_options(ServeArgs& args);
/// Serves until INT or TERM.
int serve(const ServeArgs& args);
/// Prints a token for a buyer.
Command token_command(const bool& json);
/// Makes a key of the shop.
Command key_command(const bool& json);

/// A payment provider without money.
Command simulate_command();
/// Those of serve_options() that say who is paid, who is told, and what buyers see of the shop.
std::vector<Option> target_options(ServeArgs& args);
/// Those of serve_options() that say who a client is, and how often it may ask.
std::vector<Option> client_options(ServeArgs& args);
server::RateLimitOptions rates_of(const ServeArgs& args);

/// The secrets of webhooks, a line each. Throws Error{bad_argument}.
WebhookKeys webhook_keys_of(const std::string& path);
/// Providers whose payments are taken, "acme=FILE" each; and all that the service sends to others.
struct Targets {
  server::PaymentProviders providers;
  server::MessengerOptions messenger;
};
/// Throws Error{bad_argument}.
Targets targets_of(const ServeArgs& args);

}  // namespace sluice::cli
