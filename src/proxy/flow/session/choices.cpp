// What a client chooses of its connection: SELECT, RESET.
#include <charconv>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/blocking.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/subscription.hpp"
#include "proxy/flow/session/transaction.hpp"

namespace sluice::proxy {
namespace {

// No server is known to have more. Which there are only servers know: the first request in one that
// is not there gets the server's own error.
constexpr int most_databases = 16384;

}  // namespace

void ClientSession::select(Words words, std::string_view, const Plan&) {
  const auto number = words[1];
  int database = 0;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), database);
  if (wrong != std::errc{} || end != number.data() + number.size())
    return answer("-ERR value is not an integer or out of range\r\n");
  if (database < 0 || database >= most_databases)
    return answer("-ERR DB index is out of range\r\n");
  if (database != client_.variant().db) {
    if (!client_.is_next())
      return client_.postpone();  // what goes to the other one would overtake what is under way
    client_.variant().db = database;
  }
  answer("+OK\r\n");
}

/// As if it had just come.
void ClientSession::reset(Words, std::string_view, const Plan&) {
  transaction_.reset();
  subscriptions_.reset();
  told_.clear();
  read_only_ = muted_ = false;
  client_.set_muted(false);
  client_.variant() = {.resp = 2, .db = pool().settings().redis_db};
  client_.set_logged_in(!pool().wants_login());
  answer("+RESET\r\n");
}

}  // namespace sluice::proxy
