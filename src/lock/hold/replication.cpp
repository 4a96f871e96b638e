#include "lock/hold/replication.hpp"

#include <fmt/format.h>

#include "base/hash_slot.hpp"
#include "lock/hold/steps.hpp"
#include "sluice/log.hpp"
#include "store/info.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {
namespace {

std::string_view line_of(std::string_view info, std::string_view name) {
  const auto at = info.find(name);
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace

Error unsynced(const std::string& key, const Copies& copies, const Durability& durability) {
  return Error{
      Errc::unsynced,
      fmt::format("lock {} was granted, but {}; it was given back. Look at the replicas, wait "
                  "longer, or ask for fewer",
                  quoted(key), copies.shortfall(durability))};
}

std::uint16_t slot_on(const Store& store, std::string_view key) {
  return store.is_sharded() ? hash_slot(key) : std::uint16_t{0};
}

Task<std::map<std::uint16_t, std::string>> server_identities(Store& store, SlotKeys keys) {
  Batch batch;
  for (const auto& [slot, key] : keys) {
    add_info(batch, store, key, "server");
    add_info(batch, store, key, "replication");
  }
  std::map<std::uint16_t, std::string> identities;
  for (const auto& [slot, key] : keys) identities[slot];
  try {
    const std::vector<Value> replies = co_await store.run(std::move(batch));
    auto reply = replies.begin();
    for (auto& [slot, identity] : identities) {
      const Value& server = *reply++;
      const Value& replication = *reply++;
      for (const Value* one : {&server, &replication})
        if (one->is_error()) throw error_of_reply(one->as_text());
      identity = fmt::format("{}/{}", line_of(server.as_text(), "\nrun_id:"),
                             line_of(replication.as_text(), "\nmaster_replid:"));
    }
  } catch (const std::exception& failure) {
    log(LogLevel::warning, std::string{"asking who the server is: "} + failure.what());
  }
  co_return identities;
}

}  // namespace sluice::lock
