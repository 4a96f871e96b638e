// MONITOR, MULTI, EXEC, DISCARD, WATCH, UNWATCH.
#include <algorithm>

#include "engine/core/command.hpp"
#include "engine/core/engine.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "port/verbs.hpp"

namespace sluice::port {

void Connection::monitor(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  port().audience().monitor(*this);
  reply.ok();
}

void Connection::multi(Words, WireReply& reply) {
  if (in_transaction_) return reply.error("ERR MULTI calls can not be nested");
  in_transaction_ = true;
  in_queue_ = 0;
  reply.ok();
}

void Connection::queue(Words words, const resp::CommandSpec* spec, WireReply& reply) {
  const auto& engine = port().engine().engine();
  const bool is_known = spec && (verb_of(*spec) || engine.offered(spec));
  if (spec && spec->has(resp::flag_no_multi)) {
    spoilt_ = true;
    return reply.error("ERR Command not allowed inside a transaction");
  }
  if (!is_known || !spec->arity_fits(words.size())) {
    spoilt_ = true;
    return execute(words, nullptr, reply);  // which says what is wrong
  }
  queued_.emplace_back(words.begin(), words.end());
  ++in_queue_;
  reply.simple("QUEUED");
}

void Connection::discard(Words, WireReply& reply) {
  if (!std::exchange(in_transaction_, false)) return reply.error("ERR DISCARD without MULTI");
  spoilt_ = false;
  in_queue_ = -1;
  queued_.clear();
  static_cast<void>(thread_.section());
  port().audience().unwatch(watching_);
  reply.ok();
}

void Connection::exec(Words, WireReply& reply) {
  if (!std::exchange(in_transaction_, false)) return reply.error("ERR EXEC without MULTI");
  in_queue_ = -1;
  auto& section = thread_.section();
  const bool is_dirty =
      watching_.is_dirty || std::ranges::any_of(watching_.keys, [&](const auto& watched) {
        return watched.second && !port().engine().has_key(watched.first);  // it has expired
      });
  port().audience().unwatch(watching_);
  const auto commands = std::exchange(queued_, {});
  if (std::exchange(spoilt_, false))
    return reply.error("EXECABORT Transaction discarded because of previous errors.");
  if (is_dirty) return reply.null_array();
  reply.array(commands.size());
  const auto executed = section.execute_together(session_, reply, [&](engine::Context& context) {
    for (const auto& command : commands) {
      const std::vector<std::string_view> words{command.begin(), command.end()};
      const auto* const spec = resp::find_command(words);
      const auto* const verb = spec ? verb_of(*spec) : nullptr;
      reply.begin();
      if (verb)
        (this->*verb->serve)(words, reply);
      else
        context.engine().execute(context, words, reply);
      if (reply.is_error()) context.engine().note_error(spec, true, reply.text().substr(1));
      if (tracking_ && spec) track(words, *spec);
    }
  });
  thread_.await_commit(*this, executed.position);
  if (executed.wrote) port().opened().look_after_log(true);
}

void Connection::watch(Words words, WireReply& reply) {
  if (in_transaction_) return reply.error("ERR WATCH inside MULTI is not allowed");
  static_cast<void>(thread_.section());
  for (const auto name : words.subspan(1)) {
    engine::KeyOfDatabase key{session_.database, std::string{name}};
    if (watching_.keys.contains(key)) continue;
    const bool is_there = port().engine().has_key(key);
    port().audience().watch(watching_, std::move(key), is_there);
  }
  reply.ok();
}

void Connection::unwatch(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  port().audience().unwatch(watching_);
  reply.ok();
}

}  // namespace sluice::port
