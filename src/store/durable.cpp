#include "store/durable.hpp"

#include <string>
#include <utility>

#include "store/reply_error.hpp"

namespace sluice {
namespace {

Task<DurableReply> reply_of(Task<std::vector<Value>> asked, const Script& script, std::string key) {
  std::vector<Value> replies = co_await asked;
  const std::string_view keys[] = {key};
  if (replies.at(0).is_error()) throw error_of_script(replies[0].as_text(), script, keys);
  if (replies.at(1).is_error()) throw error_of_reply(replies[1].as_text());
  co_return DurableReply{std::move(replies.at(0)), replies.at(1).as_integer()};
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

}  // namespace sluice
