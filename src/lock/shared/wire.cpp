#include "lock/shared/wire.hpp"

#include <fmt/format.h>

#include <array>

#include "lock/hold/replication.hpp"
#include "lock/hold/steps.hpp"
#include "lock/shared/acquire.lua.hpp"
#include "lock/shared/holds.lua.hpp"
#include "lock/shared/release.lua.hpp"
#include "lock/wait/acquire_reply.hpp"

namespace sluice::lock {

namespace {

constexpr std::string_view letter_of(Mode mode) { return mode == Mode::read ? "r" : "w"; }

constexpr std::string_view word_of(SharedMutexOptions::Preference preference) {
  return preference == SharedMutexOptions::Preference::writers ? "writers" : "readers";
}

}  // namespace

Error upgrade_refused(const std::string& name) {
  return Error{Errc::bad_argument,
               "an owner that reads under lock " + quoted(name) +
                   " cannot also write: two that did so would wait for each other for ever. "
                   "Release the shared hold first, or write from the beginning"};
}

SharedWire::SharedWire(Store& store, std::string name, const SharedTerms& terms)
    : store_(store),
      names_(std::move(name)),
      terms_(terms),
      preference_(word_of(terms.preference)),
      overtaking_(std::to_string(terms.overtaking)),
      hand_overs_(std::to_string(terms.hand_overs)),
      lease_(std::to_string(terms.terms.lease.count())) {}

std::string SharedWire::ticket_of(Mode mode, const Identity& who, std::string_view inbox) const {
  return inbox.empty() ? std::string{}
                       : fmt::format("{} {} {} {} {} {}", letter_of(mode), who.request,
                                     terms_.terms.claim().count(), inbox, who.owner, who.holder);
}

AcquireReply SharedWire::acquire_reply_of(const Value& reply) const {
  if (reply.is_text() && reply.as_text() == "upgrade") throw upgrade_refused(names_.key);
  return lock::acquire_reply_of(scripts::lock_shared_acquire.name, reply, names_.channel);
}

Task<AcquireReply> SharedWire::ask_acquire(Mode mode, const Identity& who,
                                           const std::string& inbox) const {
  const std::string ticket = ticket_of(mode, who, inbox);
  const std::array<std::string_view, 4> keys{names_.key, names_.token, names_.writers,
                                             names_.readers};
  const std::array<std::string_view, 11> args{
      names_.hold_keys, names_.channel, preference_, overtaking_, hand_overs_, who.request,
      letter_of(mode),  who.owner,      lease_,      who.holder,  ticket};
  if (terms_.durability.replicas > 0) {
    auto asked = run_durably(store_, scripts::lock_shared_acquire, keys, args, terms_.durability);
    const DurableReply durable = co_await asked;
    AcquireReply answer = acquire_reply_of(durable.reply);
    if (!answer.granted || durable.is_in_enough(terms_.durability)) co_return answer;
    auto ending = ask_end(mode, who, {.repeatable = true});
    co_await ending;
    throw unsynced(names_.key, durable, terms_.durability);
  }
  auto asked = store_.run(scripts::lock_shared_acquire, keys, args, {.repeatable = true});
  const Value reply = co_await asked;
  co_return acquire_reply_of(reply);
}

Task<Value> SharedWire::end(Mode mode, const Identity& who, std::string_view ticket,
                            CallOptions options) const {
  return store_.run(scripts::lock_shared_release,
                    {names_.key, names_.token, names_.writers, names_.readers},
                    {names_.hold_keys, names_.channel, preference_, overtaking_, hand_overs_,
                     who.request, letter_of(mode), ticket},
                    options);
}

Task<Value> SharedWire::ask_end(Mode mode, const Identity& who, CallOptions options) const {
  return end(mode, who, {}, options);
}

Task<Value> SharedWire::ask_give_up(Mode mode, const Identity& who,
                                    const std::string& inbox) const {
  const std::string ticket = ticket_of(mode, who, inbox);
  return end(mode, who, ticket, {.repeatable = true});
}

Task<Value> SharedWire::ask_recount(const Hold& hold, std::uint32_t entries) const {
  const fmt::format_int count{entries};
  return store_.run(
      scripts::lock_shared_recount, {names_.key},
      {names_.hold_keys, hold.who.request, lease_, std::string_view{count.data(), count.size()}},
      {.repeatable = true});
}

Task<Value> SharedWire::ask_force_release() const {
  return store_.run(scripts::lock_shared_force_release,
                    {names_.key, names_.token, names_.writers, names_.readers},
                    {names_.hold_keys, names_.channel, preference_, overtaking_, hand_overs_},
                    {.repeatable = true});
}

const Script& SharedWire::renewal(Mode mode) noexcept {
  return mode == Mode::read ? scripts::lock_shared_renew_read : scripts::lock_shared_renew_write;
}

void SharedWire::add_to(Renewal& renewal, Mode mode, const Hold& hold) const {
  renewal.keys.push_back(names_.key);
  if (mode == Mode::read) renewal.args.push_back(names_.hold_keys);
  renewal.args.push_back(hold.who.request);
  renewal.args.push_back(lease_);
}

}  // namespace sluice::lock
