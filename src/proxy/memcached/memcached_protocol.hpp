/// The text protocol of memcached, with its meta commands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/memcached/commands.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

class MemcachedProtocol : public Protocol {
 public:
  explicit MemcachedProtocol(const PoolSettings& settings);

  std::unique_ptr<RequestReader> request_reader() const override;
  std::unique_ptr<ReplyReader> reply_reader() const override;
  Plan plan(Words words) override;
  void append_fragment(std::string& out, Words words, const Plan& plan,
                       std::span<const std::uint32_t> keys) const override;
  void append_merged(std::string& out, Words words, const Plan& plan,
                     std::span<const FragmentReply> replies, bool partial) const override;
  void append_failure(std::string& out, Failure failure) const override;
  bool is_silent(Quiet quiet, std::string_view reply) const noexcept override;
  bool is_server_trouble(std::string_view) const noexcept override { return false; }
  std::string_view health_question() const noexcept override { return "version\r\n"; }
  bool is_healthy(std::string_view reply) const noexcept override {
    return reply.starts_with("VERSION ");
  }
  std::string_view command_name(std::uint16_t command) const noexcept override;
  std::size_t command_count() const noexcept override;

 private:
  using Command = MemcachedCommand;

  Plan serve(const Command& command, Plan plan, Words words, Words line);
  Plan serve_keys(const Command& command, Plan plan, Words line);
  Plan serve_meta(const Command& command, Plan plan, Words words, Words line);
  Plan serve_all(const Command& command, Plan plan);
  Plan refuse(Plan plan, std::string_view reply) const;
  Plan refuse_command(const Command& command, Plan plan, std::string_view why);
  void forward_aloud(Words words, Words line);

  std::string pool_;
  bool strict_;
  std::size_t request_size_limit_, request_words_limit_, reply_size_limit_;
  std::vector<std::string> allow_;
  std::vector<std::size_t> keys_;
  std::string reply_, forward_, routing_key_;  // what a Plan views
};

}  // namespace sluice::proxy
