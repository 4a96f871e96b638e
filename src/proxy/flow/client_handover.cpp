// A client in an upgrade: when it goes to the successor, with what, and how it goes on there.
#include "proxy/flow/client.hpp"
#include "proxy/flow/handover.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"

namespace sluice::proxy::flow {

void Client::take_over(const HandedClient& client) {
  auto state = session_state_;
  state.mode = {.resp = client.resp, .db = client.db.value_or(pool_.settings().redis_db)};
  state.has_chosen_db = client.db.has_value();
  state.logged_in = client.logged_in;
  session_state_.logged_in = client.logged_in;
  if (!client.told.empty()) session().words().set_all(client.told);
  reply_mode_.set_muted(client.muted);
  set_unread(client.unread);
  stranger_since_ -= std::chrono::milliseconds{client.age};
  last_active_ -= std::chrono::milliseconds{client.idle};
  set_rights(state, client.wants_login);
}

bool Client::can_be_handed() const noexcept {
  const auto* const to = pool_.clients().handover();
  return to && to->is_open() && !stays_ && !state_.is_closing() && is_bare();
}

bool Client::hand_over() {
  const bool can = can_be_handed();
  const bool goes_on =
      (session_ && session_->is_amid()) || unread().size() > ClientHandover::most_unread;
  if (!can || goes_on) {
    if (state_.has(Pause::handover)) {
      state_.end(Pause::handover);
      go_on();
    }
    return can;
  }
  pause_for(Pause::handover);
  // What it asks the successor would overtake what no server has answered here.
  if (unanswered_ && loop_.now() - last_active_ < quiet_time) return true;
  if (is_idle() && pool_.clients().handover()->offer(handed(), descriptor(), pool_.clients()))
    close();
  return true;
}

HandedClient Client::handed() const {
  const auto& settings = pool_.settings();
  const auto& mode = session_state_.mode;
  const auto ms_since = [this](SteadyTime time) {
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(loop_.now() - time).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ms, 0));
  };
  HandedClient client{.pool = settings.name,
                      .listen = net::to_string(settings.listen.endpoint),
                      .redis = settings.redis,
                      .id = id_,
                      .resp = mode.resp,
                      .db = {},
                      .wants_login = settings.wants_login(),
                      .logged_in = session_state_.logged_in,
                      .muted = reply_mode_.muted(),
                      .age = ms_since(stranger_since_),
                      .idle = ms_since(last_active_),
                      .told = session_ ? session_->words().all() : "",
                      .unread = std::string{unread()}};
  if (session_state_.has_chosen_db) client.db = mode.db;
  return client;
}

}  // namespace sluice::proxy::flow
