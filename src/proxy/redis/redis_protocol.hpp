/// The protocol of Redis, as a pool speaks it by default: what the table of resp knows is served,
/// or refused with an error that says why.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/rights.hpp"
#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/redis/taught_commands.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

// routes.cpp: how each command is served, by the table of resp and, for what differs from "by the
// server of its keys", routes.def.

/// Why a command is never served.
enum class Never : std::uint8_t {
  server,   ///< it is for one server: the client must ask that itself
  shared,   ///< it is about the connection, and a server's connection is shared by many clients
  cluster,  ///< it is for a node of Redis Cluster
  spread,   ///< it looks at all keys, and they are on several servers
};

struct RedisRoute {
  Route route = Route::refused;
  SessionVerb verb = SessionVerb::none;
  Merge merge = Merge::none;
  bool needs_consent = false;   ///< of the setting `allow`
  Never never = Never::server;  ///< of Route::refused
};

/// Empty: there is neither a row nor a key. A container without a subcommand is Route::refused: its
/// arity never fits.
std::optional<RedisRoute> route_of(const resp::CommandSpec& spec) noexcept;

/// `allow` has "config|get", "config get" or "config", in any case.
bool is_allowed(std::string_view command, std::span<const std::string> allow);

// replies.cpp: the replies that the proxy makes for a client, its own errors in Redis's words where
// Redis would say them, and one reply from those of several servers.

/// One error reply: "-ERR text\r\n"; line ends in `text` become blanks.
std::string error_reply(std::string_view text);
std::string unknown_command(Words words, std::string_view pool);
std::string wrong_arity(std::string_view command);
std::string not_served(std::string_view command, Never never);
std::string_view failure_reply(Failure failure) noexcept;

struct RedisMerging {
  bool partial = false;  ///< of Merge::by_key: a key without a reply has an error in its place
  bool strict = false;   ///< as twemproxy: any error but our own becomes "-ERR Invalid argument"
};

/// The reply to the client, from those of fragments or of all servers.
/// REQUIRES: `plan.merge` is not none, `replies` is not empty and each is a whole reply.
void append_merged_replies(std::string& out, const Plan& plan,
                           std::span<const FragmentReply> replies, RedisMerging merging);

class RedisProtocol : public Protocol {
 public:
  explicit RedisProtocol(const PoolSettings& settings);

  std::unique_ptr<RequestReader> request_reader() const override;
  std::unique_ptr<ReplyReader> reply_reader() const override;
  Plan plan(Words words) override;
  void append_fragment(std::string& out, Words words, const Plan& plan,
                       std::span<const std::uint32_t> keys) const override;
  void append_merged(std::string& out, Words words, const Plan& plan,
                     std::span<const FragmentReply> replies, bool partial) const override;
  void append_failure(std::string& out, Failure failure) const override;
  Effect effect_of(const Plan& plan, Words words) const override;
  bool is_silent(Quiet, std::string_view) const noexcept override { return false; }
  bool is_server_trouble(std::string_view reply) const noexcept override;
  /// Also of a server that has no password, and says so when we come with one.
  bool is_welcome(std::string_view reply) const noexcept override;
  void trim() noexcept override;
  std::string_view health_question() const noexcept override;
  bool is_healthy(std::string_view reply) const noexcept override;
  std::string_view command_name(std::uint16_t command) const noexcept override;
  std::size_t command_count() const noexcept override;
  Rights* rights_of(std::string_view user) noexcept override;

 protected:
  /// Where the keys of a command stand.
  enum class Keys : std::uint8_t {
    none,
    first,    ///< the first argument, and no other
    by_rule,  ///< resp::keys_of()
    sort,     ///< by_rule, and the patterns of SORT
    rest,     ///< all words from `first_key` on: channels
  };
  /// A command, ready to be served: made once.
  struct Row {
    Plan plan;
    Keys keys = Keys::none;
    std::uint8_t first_key = 0;
    RedisRoute route;
  };

  std::unique_ptr<RequestReader> request_reader(bool strict) const;

  std::string pool_;
  std::optional<HashTag> hash_tag_;
  bool is_of_cluster_;
  std::size_t request_size_limit_, request_words_limit_, reply_size_limit_;
  std::string reply_;  // what Plan::reply views
  std::vector<std::size_t> keys_;

 private:
  Row row_of(const resp::CommandSpec& spec, const PoolSettings& settings) const;
  Plan plan_keys(const resp::CommandSpec& spec, const Row& row, Words words);
  Plan plan_local(const resp::CommandSpec& spec, const Row& row, Words words);
  Plan refuse(const resp::CommandSpec& spec, const Row& row);
  Plan refused(std::uint16_t command, std::string reply);

  TaughtCommands taught_;
  std::vector<Row>
      rows_;  // by CommandSpec::index; between the table's and `taught_` what is unknown
  std::map<std::string, Rights, std::less<>> rights_;  // by name, of users who have the setting
};

/// Compat::strict: twemproxy's commands, and its behaviour.
class StrictRedisProtocol final : public RedisProtocol {
 public:
  StrictRedisProtocol(const PoolSettings& settings, std::size_t mbuf_size);

  std::unique_ptr<RequestReader> request_reader() const override;
  Plan plan(Words words) override;
  void append_merged(std::string& out, Words words, const Plan& plan,
                     std::span<const FragmentReply> replies, bool partial) const override;
  /// twemproxy ignores what the server says.
  bool is_welcome(std::string_view) const noexcept override { return true; }

 private:
  /// How many words twemproxy takes, by which it tells the shapes of commands.
  enum class Shape : std::uint8_t { unknown, exactly, at_least, pairs, eval };
  enum class Serves : std::uint8_t { key, fragments, placeholder, ping, auth, quit };
  struct StrictRow {
    Shape shape = Shape::unknown;
    Serves serves = Serves::key;
    std::uint8_t words = 0;
    Merge merge = Merge::none;
    bool read_only = false;
  };

  static bool shape_fits(const StrictRow& row, Words words) noexcept;
  bool find_keys(const StrictRow& row, Words words);
  Plan serve(const StrictRow& row, std::uint16_t command, Words words);
  Plan authenticate(Plan plan, Words words);

  std::string password_;
  std::size_t key_limit_;
  std::vector<StrictRow> rows_;  // by CommandSpec::index
};

}  // namespace sluice::proxy
