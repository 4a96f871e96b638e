#include "lock/hold/replication.hpp"

#include <fmt/format.h>

#include "lock/hold/steps.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {
namespace {

Task<DurableReply> reply_of(Task<std::vector<Value>> asked, const Script& script, std::string key) {
  std::vector<Value> replies = co_await asked;
  const std::string_view keys[] = {key};
  if (replies.at(0).is_error()) throw error_of_script(replies[0].as_text(), script, keys);
  if (replies.at(1).is_error()) throw error_of_reply(replies[1].as_text());
  co_return DurableReply{std::move(replies.at(0)), replies.at(1).as_integer()};
}

std::string_view line_of(std::string_view info, std::string_view name) {
  const auto at = info.find(name);
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace

Task<DurableReply> run_durably(Store& store, const Script& script, Words keys, Words args,
                               const Durability& durability) {
  Batch batch;
  batch.add(script, keys, args);
  add_wait(batch, durability);
  return reply_of(store.run(std::move(batch), {.repeatable = true}), script,
                  std::string{keys.front()});
}

void add_wait(Batch& batch, const Durability& durability) {
  batch.add(
      {"WAIT", std::to_string(durability.replicas), std::to_string(durability.within.count())});
}

bool is_in_enough(const std::vector<Value>& replies, const Durability& durability) {
  return !replies.empty() && replies.back().type() == Value::Type::integer &&
         replies.back().as_integer() >= durability.replicas;
}

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
