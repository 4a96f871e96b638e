/// What the examples of public headers take for granted: a store, a sale, and functions of the
/// reader's own program.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/bucketed_sale.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/payment_provider.hpp"
#include "sluice/sluice.hpp"

struct User;

/// A name here hides one of C's, `clock` and `write` for two.
namespace reader {

using namespace sluice;
using namespace std::chrono_literals;

/// A function of the reader's program, and what it returns.
struct Anything {
  Anything() = default;
  template <class T>
  Anything(T&& /*value*/) {}
  template <class... Args>
  Anything operator()(Args&&... /*args*/) const {
    return {};
  }
};

extern const Anything fetch, lead, load, not_found, print, refuse, sell, show, too_many_requests,
    transfer, work_at, write, write_the_file, yield_to;
extern Anything page, price_list;
extern const std::string body, name, secret, text, url;
std::string select_name(const std::string& id);
std::map<std::string, std::string> select_names(const std::vector<std::string>& ids);
Delivery send(const SignedMessage& message);

extern const Clock& clock;
extern const WallTime now;
extern const std::unique_ptr<Store> store, a, b, c;
extern OrderStore& orders;
extern Sale sale;
extern Mutex mutex;
extern const FencingToken token;
extern const WebhookHead head;
extern const ProviderRequest webhook;

/// Keys of tokens and of webhooks.
extern const struct Keys {
  operator const TokenKeys&() const;
  operator WebhookKeys() const;
} keys;

extern struct Response { std::string body; } response;

extern int pool;
namespace asio {
template <class Work>
void post(int& pool, Work work);
}

}  // namespace reader
