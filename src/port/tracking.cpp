#include "port/tracking.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "engine/core/command.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "port/verbs.hpp"

namespace sluice::port {

using resp::is_word;

void Trackers::begin(Connection& connection) { connections_[connection.id()] = &connection; }

void Trackers::end(Connection& connection) { connections_.erase(connection.id()); }

void Trackers::keeps(Connection& connection, std::string_view key) {
  const auto found = kept_.find(key);
  if (found != kept_.end()) return found->second.insert(connection.id()), void();
  if (kept_.size() >= most_keys) forget(kept_.begin(), nullptr);
  kept_[std::string{key}].insert(connection.id());
}

void Trackers::forget(std::map<std::string, std::set<std::uint64_t>, std::less<>>::iterator kept,
                      const engine::Session* by) {
  const auto entry = kept_.extract(kept);
  const std::string_view key = entry.key();
  for (const auto id : entry.mapped()) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    const bool is_own = &found->second->session() == by && found->second->tracking()->skips_own;
    if (!is_own) tell(*found->second, &key);
  }
}

void Trackers::changed(std::string_view key, const engine::Session* by) {
  if (const auto found = kept_.find(key); found != kept_.end()) forget(found, by);
  for (const auto& [id, connection] : connections_) {
    const auto& tracking = *connection->tracking();
    if (tracking.mode != Tracking::Mode::prefixes) continue;
    if (tracking.skips_own && &connection->session() == by) continue;
    const bool begins = std::ranges::any_of(
        tracking.prefixes, [&](const auto& prefix) { return key.starts_with(prefix); });
    if (begins || tracking.prefixes.empty()) tell(*connection, &key);
  }
}

void Trackers::all_changed() {
  kept_.clear();
  for (const auto& [id, connection] : connections_) tell(*connection, nullptr);
}

/// In RESP3 a push; in RESP2 a message to the connection that it is redirected to.
void Trackers::tell(Connection& connection, const std::string_view* key) {
  Connection* to = &connection;
  const auto redirect = connection.tracking()->redirect;
  if (redirect != 0) {
    auto& all = connection.thread().port().connections();
    const auto found = all.find(redirect);
    if (found == all.end()) {
      std::string lost;
      resp::ReplyWriter writer{lost, connection.session().protocol};
      writer.push(2);
      writer.items("tracking-redir-broken", redirect);
      if (connection.session().protocol == 3) connection.say(lost);
      return;
    }
    to = found->second;
  }
  std::string text;
  resp::ReplyWriter writer{text, to->session().protocol};
  if (to->session().protocol == 3) {
    writer.push(2);
    writer.bulk("invalidate");
  } else {
    if (redirect == 0 || !to->is_listening()) return;
    writer.push(3);
    writer.items("message", "__redis__:invalidate");
  }
  if (key) {
    writer.array(1);
    writer.bulk(*key);
  } else {
    writer.null();
  }
  to->say(text);
}

// --- what clients say ---

void Connection::client_tracking(Words words, WireReply& reply) {
  static_cast<void>(thread_.section());
  auto& trackers = port().audience().trackers();
  if (is_word(words[2], "off")) {
    trackers.end(*this);
    tracking_.reset();
    return reply.ok();
  }
  if (!is_word(words[2], "on")) return reply.error(engine::syntax_error);
  using Mode = Tracking::Mode;
  Tracking wanted;
  std::optional<Mode> mode;
  for (std::size_t at = 3; at < words.size(); ++at) {
    const bool has_value = at + 1 < words.size();
    if (is_word(words[at], "redirect") && has_value) {
      const auto id = parse_integer<std::uint64_t>(words[++at]);
      if (!id) return reply.error(engine::not_an_integer);
      wanted.redirect = *id;
      if (*id != 0 && !port().connections().contains(*id))
        return reply.error("ERR The client ID you want redirect to does not exist");
    } else if (is_word(words[at], "prefix") && has_value) {
      wanted.prefixes.emplace_back(words[++at]);
    } else if (is_word(words[at], "noloop")) {
      wanted.skips_own = true;
    } else {
      const auto before = mode;
      if (is_word(words[at], "bcast"))
        mode = Mode::prefixes;
      else if (is_word(words[at], "optin"))
        mode = Mode::opt_in;
      else if (is_word(words[at], "optout"))
        mode = Mode::opt_out;
      else
        return reply.error(engine::syntax_error);
      if (before && before != mode)
        return reply.error(*before == Mode::prefixes || *mode == Mode::prefixes
                               ? "ERR OPTIN and OPTOUT are not compatible with BCAST"
                               : "ERR You can't use both OPTIN and OPTOUT options");
    }
  }
  wanted.mode = mode.value_or(Mode::all);
  if (!wanted.prefixes.empty() && wanted.mode != Mode::prefixes)
    return reply.error("ERR PREFIX option requires BCAST mode to be enabled");
  if (tracking_ && (tracking_->mode == Mode::prefixes) != (wanted.mode == Mode::prefixes))
    return reply.error(
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
        "then re-enabling it with a different mode.");
  if (tracking_ && wanted.mode == Mode::prefixes)
    wanted.prefixes.insert(wanted.prefixes.end(), tracking_->prefixes.begin(),
                           tracking_->prefixes.end());
  tracking_ = std::make_unique<Tracking>(std::move(wanted));
  trackers.begin(*this);
  reply.ok();
}

void Connection::client_caching(Words words, WireReply& reply) {
  using Mode = Tracking::Mode;
  if (!tracking_ || (tracking_->mode != Mode::opt_in && tracking_->mode != Mode::opt_out))
    return reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  const bool yes = is_word(words[2], "yes");
  if (!yes && !is_word(words[2], "no")) return reply.error(engine::syntax_error);
  if (yes != (tracking_->mode == Mode::opt_in))
    return reply.error(
        fmt::format("ERR CLIENT CACHING {} is only valid when tracking is enabled in {} mode.",
                    yes ? "YES" : "NO", yes ? "OPTIN" : "OPTOUT"));
  tracking_->caching = yes;
  is_caching_new_ = true;
  reply.ok();
}

void Connection::client_getredir(Words, WireReply& reply) {
  reply.integer(tracking_ ? static_cast<std::int64_t>(tracking_->redirect) : -1);
}

void Connection::client_trackinginfo(Words, WireReply& reply) {
  using Mode = Tracking::Mode;
  std::vector<std::string_view> flags;
  if (!tracking_) flags.emplace_back("off");
  if (tracking_) {
    flags.emplace_back("on");
    if (tracking_->mode == Mode::prefixes) flags.emplace_back("bcast");
    if (tracking_->mode == Mode::opt_in) flags.emplace_back("optin");
    if (tracking_->mode == Mode::opt_out) flags.emplace_back("optout");
    if (tracking_->caching) flags.emplace_back(*tracking_->caching ? "caching-yes" : "caching-no");
    if (tracking_->skips_own) flags.emplace_back("noloop");
  }
  reply.map(3);
  reply.bulk("flags");
  reply.set(flags.size());
  for (const auto flag : flags) reply.bulk(flag);
  reply.bulk("redirect");
  reply.integer(tracking_ ? static_cast<std::int64_t>(tracking_->redirect) : -1);
  reply.bulk("prefixes");
  reply.array(tracking_ ? tracking_->prefixes.size() : 0);
  if (tracking_)
    for (const auto& prefix : tracking_->prefixes) reply.bulk(prefix);
}

/// After a command was executed: what it has read the client keeps from now on.
void Connection::track(Words words, const resp::CommandSpec& spec) {
  if (spec.has(resp::flag_readonly) && tracking_->keeps()) {
    std::vector<std::size_t> positions;
    if (resp::keys_of(spec, words, positions))
      for (const auto at : positions) port().audience().trackers().keeps(*this, words[at]);
  }
  if (!std::exchange(is_caching_new_, false) && !in_transaction_) tracking_->caching.reset();
}

}  // namespace sluice::port
