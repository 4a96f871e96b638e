/// The protocol of Redis, as a pool speaks it by default: what the table of resp knows is served,
/// or refused with an error that says why.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/redis/routes.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

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
  bool is_silent(Quiet, std::string_view) const noexcept override { return false; }
  bool is_server_trouble(std::string_view reply) const noexcept override;
  /// Also of a server that has no password, and says so when we come with one.
  bool is_welcome(std::string_view reply) const noexcept override;
  std::string_view health_question() const noexcept override;
  bool is_healthy(std::string_view reply) const noexcept override;
  std::string_view command_name(std::uint16_t command) const noexcept override;
  std::size_t command_count() const noexcept override;

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
  std::size_t request_size_limit_, request_words_limit_, reply_size_limit_;
  std::string reply_;  // what Plan::reply views
  std::vector<std::size_t> keys_;

 private:
  Row row_of(const resp::CommandSpec& spec, const PoolSettings& settings) const;
  Plan plan_keys(const resp::CommandSpec& spec, const Row& row, Words words);
  Plan plan_local(const resp::CommandSpec& spec, const Row& row, Words words);
  Plan refuse(const resp::CommandSpec& spec, const Row& row);
  Plan refused(std::uint16_t command, std::string reply);

  std::vector<Row> rows_;  // by CommandSpec::index
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
