/// Which server is the master, by the word of its Sentinels and by its own. Decides without I/O,
/// without threads and without a clock; who does the I/O drives it like this:
///
///     for (const auto& question : watch.act(clock.steady())) ...     // after each event, and at
///                                                                    // watch.wakes()
///       of_sentinel: its replies to sentinel_commands(name) -> answered(); of_server: to ROLE
///       no reply: failed()
///     to each of watch.sentinels() a connection that is subscribed to +switch-master: heard(); it
///     was lost and is there again: is_back()
///     READONLY, a connection of the master that broke: doubt()
///     after each event: master() is another one, or none: close the connections of the one before
///
/// The algorithm is that of Redis ("Guidelines for Redis clients with support for Sentinel") with
/// what it leaves out. All Sentinels are asked, at the same time and every second, and heard:
/// +switch-master only makes that sooner, so that a lost message costs a second. The one with the
/// latest config epoch is right; where epochs are the same the one that most of them name. A server
/// is used when its own ROLE says that it is the master; one that is a replica leads on to its
/// master, as after FAILOVER TO, of which Sentinels do not know.
///
/// A master that lives is left at once when a Sentinel knows a later epoch and names a replica of
/// it: it would acknowledge writes for ten more seconds, which are lost (redis 6062, 13118; valkey
/// 1238). A server of which nobody knew counts once most Sentinels name it: another deployment may
/// have got the address of one of them, and know a master of the same name. An older epoch never
/// leads back, unless most Sentinels name that server: then they watch it anew. Without Sentinels
/// all stays as it is. Sentinels are learned of from those that name the same master; one that was
/// learned of, is away and is listed by no other any more is forgotten.
///
/// While the master does not answer, doubts ask at most once in a tenth of that time, from 100 ms
/// to `poll`: many processes together then ask a node little more than they do in peace.
///
/// A node that does not answer in time has twice the time for the next question, up to a limit: it
/// may be far away, or its name slow.
///
/// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"
#include "topology/sentinel_view.hpp"

namespace sluice::topology {

struct SentinelOptions {
  std::string name;  ///< of the master, as the Sentinels have it
  std::chrono::milliseconds poll{1'000};
  std::chrono::milliseconds answer_timeout{500};
  /// The most that it grows to for a node that is slow.
  std::chrono::milliseconds longest_answer_timeout{500};
  /// Between two questions to one server or Sentinel while there is no master: at least, and a
  /// tenth of the outage, up to `poll`.
  std::chrono::milliseconds retry{200};
  /// How long the others have, after the first answer of all, to know better.
  std::chrono::milliseconds settle{100};
  /// How long what a Sentinel has said counts.
  std::chrono::milliseconds memory{3'000};
};

struct SentinelQuestion {
  enum class To : std::uint8_t { sentinel, server };
  std::uint64_t id = 0;
  To to = To::sentinel;
  Endpoint node;
  /// Who has no answer until then says why by failed(), for a better message; it is over a moment
  /// later anyhow.
  SteadyTime deadline;
};

class SentinelWatch {
 public:
  /// Throws Error{bad_argument} without a Sentinel or a name.
  SentinelWatch(std::vector<Endpoint> sentinels, SentinelOptions options);

  std::vector<SentinelQuestion> act(SteadyTime now);
  SteadyTime wakes() const;

  void answered(SteadyTime now, std::uint64_t question, std::span<const Value> replies);
  void failed(SteadyTime now, std::uint64_t question, std::string_view why);
  /// A message of +switch-master.
  void heard(SteadyTime now, std::string_view message);
  void is_back(SteadyTime now, const Endpoint& sentinel);
  void doubt(SteadyTime now);

  /// Nothing: none is known that is to be used.
  const std::optional<Endpoint>& master() const noexcept { return master_; }
  /// Of the last failover that is known.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Those that the Sentinels reach. The master may be among them for a moment.
  const std::vector<Endpoint>& replicas() const noexcept { return replicas_; }
  std::vector<Endpoint> sentinels() const;

  /// Each Sentinel has answered once, or has failed otherwise than by its silence.
  bool have_all_told() const;
  bool has_any_answered() const noexcept { return first_answer_.has_value(); }
  /// Sentinels answer, and none knows the name.
  bool is_name_unknown() const;
  /// Why there is no master, for an error message.
  std::string why_not() const;

 private:
  struct Sentinel {
    bool is_seed = false;
    SteadyTime next{};                 // when it is to be asked
    SteadyTime asked{};                // when it was
    bool is_asked = false;             // a question is in flight
    bool has_told = false;             // it has answered or failed once
    std::optional<SteadyTime> answer;  // when it has said `view`
    SentinelView view{};
    std::string why_not{};
    SteadyTime listed{};  // by another one
  };
  struct Asked {
    SentinelQuestion question;
    SteadyTime at{};
    int hops = 0;  // of a server: how many replicas have led to it
    std::uint64_t epoch = 0;
  };
  /// What the Sentinels say together.
  struct Word {
    Endpoint master;
    std::uint64_t epoch = 0;
    std::size_t votes = 0;
    const std::vector<Endpoint>* replicas = nullptr;
  };

  void take(SteadyTime now, const Asked& asked, SentinelView view);
  void take_role(SteadyTime now, const Asked& asked, const RoleView& role);
  void learn(SteadyTime now, const Endpoint& from, const std::vector<Endpoint>& listed);
  std::vector<Word> words(SteadyTime now) const;
  std::optional<Word> word_to_follow(SteadyTime now) const;
  bool counts(SteadyTime now, const Word& word, const std::vector<Word>& all) const;
  std::vector<Endpoint> servers_of(const Endpoint& master) const;
  SentinelQuestion question_to(SteadyTime now, SentinelQuestion::To to, const Endpoint& node);
  void note_silence(const Endpoint& node);
  void note_answer(SteadyTime now, const Asked& asked);
  void follow_word(SteadyTime now);
  void ask_soon(SteadyTime now, Sentinel& sentinel, std::chrono::milliseconds pace);
  void ask_all(SteadyTime now, std::chrono::milliseconds pace);
  void ask_roles(SteadyTime now, std::vector<SentinelQuestion>& questions);
  void ask_server(SteadyTime now, const Endpoint& server, int hops, std::uint64_t epoch,
                  std::vector<SentinelQuestion>& questions);
  bool has_settled(SteadyTime now) const;
  std::chrono::milliseconds pause(SteadyTime now) const;
  std::chrono::milliseconds pace(SteadyTime now, std::chrono::milliseconds least) const;

  const SentinelOptions options_;
  std::map<Endpoint, Sentinel> sentinels_;
  std::map<std::uint64_t, Asked> in_flight_;
  std::map<Endpoint, std::chrono::milliseconds> slow_;  // which have more time to answer
  std::uint64_t last_question_ = 0;
  std::optional<Endpoint> master_;
  SteadyTime had_master_{};  // when a server said last that it is, or the search began
  std::uint64_t epoch_ = 0;
  std::vector<Endpoint> replicas_;
  std::optional<SteadyTime> first_answer_;
  std::optional<Endpoint> named_;  // by the Sentinels, when they were last listened to
  std::vector<Endpoint> known_;    // that master and its replicas, by the word of its Sentinels
  std::optional<Asked> led_on_;    // a server to which a replica has led
  SteadyTime roles_{};             // when servers are to be asked for their roles
  SteadyTime roles_asked_{};       // when they were
  std::string role_why_not_;
};

}  // namespace sluice::topology
