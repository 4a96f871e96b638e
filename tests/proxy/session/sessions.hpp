/// The states that a session can be in, and how each goes on.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/session/stage.hpp"

namespace sluice::test {

struct SessionState {
  enum class Kind { writes, silent, blocked, listens, scans, loses, reads };

  std::string name;
  /// What brings it about, and what its client goes on with. @: its key; #: the script.
  std::vector<std::string> before, after;
  Kind kind = Kind::writes;
  int db = -1;            ///< that it has chosen
  bool denied = false;    ///< the write at its end
  std::string told = {};  ///< the reply to the first line of `after`
};

inline const std::vector<SessionState>& session_states() {
  using enum SessionState::Kind;
  static const std::vector<SessionState> states{
      {"plain", {}, {"INCR @"}},
      {"MULTI", {"MULTI"}, {"INCR @", "EXEC"}},
      {"queued", {"MULTI", "INCR @"}, {"EXEC"}},
      {"queued without a key", {"MULTI", "PING"}, {"INCR @", "EXEC"}},
      {"WATCH", {"WATCH @"}, {"MULTI", "INCR @", "EXEC"}},
      {"WATCH, queued", {"WATCH @", "MULTI", "INCR @"}, {"EXEC"}},
      {"WATCH, and another's write", {"WATCH @"}, {"MULTI", "INCR @", "EXEC"}, loses},
      {"its own write", {}, {"SET @ 1", "STRLEN @"}, reads},
      {"BLPOP", {"BLPOP @ 0"}, {}, blocked},
      {"SUBSCRIBE", {"SUBSCRIBE @"}, {}, listens},
      {"PSUBSCRIBE", {"PSUBSCRIBE @*"}, {}, listens},
      {"SSUBSCRIBE", {"SSUBSCRIBE @"}, {}, listens},
      {"SELECT", {"SELECT 3"}, {"INCR @"}, writes, 3},
      {"SELECT, queued", {"SELECT 3", "MULTI", "INCR @"}, {"EXEC"}, writes, 3},
      {"another user", {"AUTH other o"}, {"INCR @"}, writes, -1, true},
      {"SETNAME", {"CLIENT SETNAME it"}, {"CLIENT GETNAME", "INCR @"}, writes, -1, false, "$2 it"},
      {"REPLY OFF", {"CLIENT REPLY OFF"}, {"INCR @", "CLIENT REPLY ON"}, silent},
      {"HELLO 3", {"HELLO 3"}, {"HGETALL absent@", "INCR @"}, writes, -1, false, "%0"},
      {"script", {"SCRIPT LOAD return(redis.call('INCR',KEYS[1]))"}, {"EVALSHA # 1 @"}},
      {"script, queued",
       {"SCRIPT LOAD return(redis.call('INCR',KEYS[1]))", "MULTI", "EVALSHA # 1 @"},
       {"EXEC"}},
      {"SCAN", {"SCAN 0 COUNT 10"}, {}, scans},
  };
  return states;
}

class Session {
 public:
  /// So many keys each server has from the beginning.
  static constexpr int fill = 60;

  Session(Stage& stage, const SessionState& state, std::string key)
      : stage_(stage), state_(state), key_(std::move(key)), client_(stage.port()) {
    client_.patience = std::chrono::seconds{4};
  }

  /// What is wrong; empty: it is in its state.
  std::string begin() {
    if (const auto reply = stage_.ask(client_, "AUTH app a"); reply != "+OK") return reply;
    home_before_ = stage_.home_of(key_);
    for (const auto& line : state_.before) {
      client_.send(request(filled(line)));
      if (is_unanswered(line)) break;
      const auto reply = stage_.answer(client_);
      if (reply.front() == '-' || reply == "closed") return line + ": " + reply;
      take(reply);
    }
    return {};
  }
  /// The whole session without a look at what is answered; `meanwhile` something happens behind the
  /// first requests.
  std::string play(std::size_t first = 0, const std::function<void()>& meanwhile = {}) {
    if (const auto reply = stage_.ask(client_, "AUTH app a"); reply != "+OK") return reply;
    static_cast<void>(stage_.ask(client_, "GET none"));  // a limit lets one pass at the least
    home_before_ = stage_.home_of(key_);
    auto lines = state_.before;
    lines.insert(lines.end(), state_.after.begin(), state_.after.end());
    auto server = stage_.direct(home_before_);
    for (const auto& line : lines)
      if (line.starts_with("SCRIPT LOAD")) take(stage_.ask(server, line));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      send(filled(lines[i]));
      if (i + 1 == first) meanwhile();
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i == state_.before.size()) first_after_ = replies_.size();
      if (is_unanswered(lines[i])) continue;
      replies_.push_back(stage_.answer(client_));
      if (replies_.back() == "closed" || replies_.back() == "nothing") break;
    }
    if (state_.kind == Kind::blocked) return go_on_blocked();
    const bool is_refused = replies_.back().front() == '-' || replies_.back() == "closed";
    if (state_.kind == Kind::listens) return is_refused ? "" : go_on_listening();
    if (state_.kind != Kind::scans) return verdict();
    if (is_refused) return {};
    take(replies_.back());
    return go_on_scanning();
  }
  /// What is wrong; empty: what the client sees is what its session means, or a clear error.
  std::string go_on() {
    switch (state_.kind) {
      case Kind::blocked: return go_on_blocked();
      case Kind::listens: return go_on_listening();
      case Kind::scans: return go_on_scanning();
      default: break;
    }
    if (state_.kind == Kind::loses) {
      auto other = stage_.client("root r");
      if (stage_.ask(other, "INCR " + key_) != ":1") return {};  // it is lost otherwise
    }
    for (const auto& line : state_.after) {
      if (is_unanswered(line)) {
        send(filled(line));
        continue;
      }
      replies_.push_back(stage_.ask(client_, filled(line)));
      const auto& reply = replies_.back();
      if (reply == "closed" || reply == "nothing") break;
      if (line == "MULTI" && reply.front() == '-') break;
    }
    return state_.kind == Kind::loses ? verdict_of_loser() : verdict();
  }
  /// Nothing has disturbed it.
  bool is_undisturbed() const {
    return std::ranges::none_of(replies_, [&](const auto& reply) {
      const bool is_error = reply.front() == '-' && !state_.denied;
      const bool is_lost = reply == "_" && state_.kind != Kind::loses;
      return is_error || reply == "closed" || is_lost;
    });
  }
  const std::vector<std::string>& replies() const { return replies_; }

 private:
  using Kind = SessionState::Kind;

  bool is_unanswered(std::string_view line) const {
    const bool is_muted = state_.kind == Kind::silent && !line.ends_with(" ON");
    return is_muted || line.starts_with("BLPOP");
  }
  std::string filled(std::string line) const {
    for (std::size_t at; (at = line.find('@')) != line.npos;) line.replace(at, 1, key_);
    for (std::size_t at; (at = line.find('#')) != line.npos;) line.replace(at, 1, sha_);
    return line;
  }
  void take(const std::string& reply) {
    if (reply.starts_with("$40 ")) sha_ = reply.substr(4);
    if (state_.kind == Kind::scans) take_keys(reply);
  }
  void send(const std::string& line) {
    try {
      client_.send(request(line));
    } catch (const std::system_error&) {
      replies_.emplace_back("closed");
    }
  }

  /// By what was answered: whether the one write is where it must be.
  std::string verdict() const {
    const auto found = stage_.found(key_);
    const auto text = fmt::format("{} -> {}", fmt::join(replies_, " | "), fmt::join(found, ", "));
    for (const auto& reply : replies_)
      if (reply == "nothing" || reply.empty()) return "no reply: " + text;
    if (!state_.told.empty() && replies_.size() > first_after_) {
      const auto& told = replies_[first_after_];
      if (told.front() != '-' && told != "closed" && told != state_.told)
        return "it has forgotten: " + text;
    }
    const bool is_done =
        !replies_.empty() &&
        std::set<std::string>{":1", "*1 :1", "*2 +PONG :1"}.contains(replies_.back());
    if (is_done && state_.denied) return "it was not to be done: " + text;
    const auto db = state_.db >= 0 ? state_.db : stage_.settings().redis_db;
    std::set<std::string> right;
    for (auto home : homes()) right.insert(fmt::format("{}/{}=1", home, db));
    if (is_done && !(found.size() == 1 && right.contains(found[0]))) return "not there: " + text;
    if (is_done) return {};
    const auto& last = replies_.empty() ? std::string{"closed"} : replies_.back();
    if (state_.kind == Kind::reads && replies_.front() == "+OK")
      return last.front() == '-' || last == "closed" ? "" : "its write is not seen: " + text;
    const bool is_unknown = state_.kind == Kind::silent || last == "closed" ||
                            last.contains("unknown") || last.contains("timed out") ||
                            last.contains("reset");
    const bool is_nothing = last == "_" || (state_.kind == Kind::reads && last == ":0");
    if (last.front() != '-' && !is_nothing && !is_unknown)
      return "neither done nor an error: " + text;
    if (found.empty()) return {};
    right.insert(fmt::format("{}/{}=1", home_before_, db));
    if (is_unknown && found.size() == 1 && right.contains(found[0])) return {};
    return "done in spite of it: " + text;
  }
  /// What it watches was written by another: of its own nothing is done.
  std::string verdict_of_loser() const {
    const auto found = stage_.found(key_);
    const auto& last = replies_.back();
    const bool is_told = last == "_" || last.front() == '-' || last == "closed";
    if (is_told && found.size() == 1 && found[0].ends_with("=1")) return {};
    return fmt::format("{} -> {}", fmt::join(replies_, " | "), fmt::join(found, ", "));
  }
  std::vector<std::uint16_t> homes() const {
    auto homes = stage_.other_homes();
    homes.push_back(stage_.home_of(key_));
    return homes;
  }

  std::string go_on_blocked() {
    auto giver = stage_.client("root r");
    const auto pushed = stage_.ask(giver, "RPUSH " + key_ + " it");
    if (pushed.front() == '-') return {};  // nothing can come
    replies_.push_back(stage_.answer(client_));
    const auto& reply = replies_.back();
    const bool is_right = reply.ends_with("$2 it") || reply.front() == '-' || reply == "closed";
    return is_right ? "" : "pushed " + pushed + ", and it hears " + reply;
  }
  std::string go_on_listening() {
    auto speaker = stage_.client("root r");
    const bool sharded = state_.name == "SSUBSCRIBE";
    const auto told = stage_.ask(speaker, (sharded ? "SPUBLISH " : "PUBLISH ") + key_ + " it");
    if (told.front() == '-') return {};  // nothing can come
    replies_.push_back(stage_.answer(client_));
    const auto& reply = replies_.back();
    return reply == "closed" || reply.ends_with("$2 it")
               ? ""
               : "published " + told + ", and it hears " + reply;
  }
  void take_keys(const std::string& reply) {
    std::istringstream stream{reply};
    std::string word, size;
    stream >> word >> size >> cursor_;
    while (stream >> word)
      if (word.starts_with("fill:")) seen_.insert(word);
  }
  std::string go_on_scanning() {
    for (int calls = 0; cursor_ != "0"; ++calls) {
      replies_.push_back(stage_.ask(client_, "SCAN " + cursor_ + " COUNT 10"));
      if (replies_.back().front() == '-' || replies_.back() == "closed") return {};
      if (calls == 1000) return "it has no end";
      take(replies_.back());
    }
    for (const auto server : stage_.ring()) {
      const auto prefix = stage_.fill_prefix(server);
      for (int i = 0; i < fill; ++i)
        if (const auto key = prefix + std::to_string(i); !seen_.contains(key))
          return fmt::format("{} keys, and {} is not among them", seen_.size(), key);
    }
    return {};
  }

  Stage& stage_;
  const SessionState& state_;
  std::string key_;
  PlainClient client_;
  std::uint16_t home_before_ = 0;
  std::string cursor_, sha_;
  std::set<std::string> seen_;
  std::vector<std::string> replies_;
  std::size_t first_after_ = 0;  // the reply to the first line of `after`
};

}  // namespace sluice::test
