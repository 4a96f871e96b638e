#include "lock/hold/replication.hpp"

#include <fmt/format.h>

#include "lock/hold/steps.hpp"
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

Error unsynced(const std::string& key, const DurableReply& reply, const Durability& durability) {
  return Error{
      Errc::unsynced,
      fmt::format("lock {} was granted, but {} of {} replicas had it within {} ms; it was "
                  "given back. Look at the replicas, wait longer, or ask for fewer",
                  quoted(key), reply.replicas, durability.replicas, durability.within.count())};
}

Task<std::string> server_identity(Store& store) {
  Batch batch;
  batch.add({"INFO", "server"}).add({"INFO", "replication"});
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  std::string identity{line_of(replies.at(0).as_text(), "\nrun_id:")};
  identity += '/';
  identity += line_of(replies.at(1).as_text(), "\nmaster_replid:");
  co_return identity;
}

}  // namespace sluice::lock
