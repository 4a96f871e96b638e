#include "sluice/store.hpp"

#include "base/callback.hpp"

void std::default_delete<sluice::Store>::operator()(sluice::Store* store) const noexcept {
  delete store;
}

namespace sluice {

Batch& Batch::add(Words command) {
  items_.push_back(Item{.words = {command.begin(), command.end()}});
  return *this;
}

Batch& Batch::add(const Script& script, Words keys, Words args) {
  Item item{.script = &script, .key_count = keys.size()};
  item.words.reserve(keys.size() + args.size());
  item.words.insert(item.words.end(), keys.begin(), keys.end());
  item.words.insert(item.words.end(), args.begin(), args.end());
  return add(std::move(item));
}

Batch& Batch::add(Item item) {
  items_.push_back(std::move(item));
  return *this;
}

// NOLINTBEGIN(performance-unnecessary-value-param): Stores that have more to do keep them
Listener Store::on_reconnect(std::function<void()>) { return {}; }

Task<Listener> Store::subscribe(std::string channel, MessageHandler handler) {
  return listen(std::move(channel), std::move(handler));
}

Listener Store::watch_connection(std::function<void()> handler) {
  return on_reconnect(std::move(handler));
}

Listener Store::track(std::string, MessageHandler) {
  throw Error{Errc::bad_argument, describe() + " does not tell which keys have changed"};
}

void Store::call_back(std::function<void()> callback) noexcept {
  call_user("a callback", callback);
}
// NOLINTEND(performance-unnecessary-value-param)

Task<WallTime> Store::time() {
  auto asked = run({"TIME"});
  const Value reply = co_await asked;
  const auto& parts = reply.as_items();
  if (parts.size() != 2)
    throw Error{Errc::protocol,
                "TIME answered " + to_string(reply) + " instead of seconds and microseconds"};
  co_return WallTime{std::chrono::seconds{parts[0].as_integer()} +
                     std::chrono::microseconds{parts[1].as_integer()}};
}

}  // namespace sluice
