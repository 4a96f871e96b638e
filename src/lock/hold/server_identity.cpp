#include "lock/hold/server_identity.hpp"

#include <string_view>

namespace sluice::lock {
namespace {

std::string_view line_of(std::string_view info, std::string_view name) {
  const auto at = info.find(name);
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace

Task<std::string> server_identity(Store& store) {
  Batch batch;
  batch.add({"INFO", "server"}).add({"INFO", "replication"});
  auto asked = store.run(std::move(batch));
  const std::vector<Value> replies = co_await asked;
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  std::string identity{line_of(replies.at(0).as_text(), "\nrun_id:")};
  identity += '/';
  identity += line_of(replies.at(1).as_text(), "\nmaster_replid:");
  co_return identity;
}

}  // namespace sluice::lock
