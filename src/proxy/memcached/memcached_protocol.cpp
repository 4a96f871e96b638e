#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/base64.hpp"
#include "proxy/config/config.hpp"
#include "proxy/memcached/commands.hpp"
#include "proxy/memcached/readers.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {
namespace {

using enum MemcachedKind;

bool has_flag(Words flags, char flag) noexcept {
  return std::ranges::any_of(flags,
                             [flag](std::string_view word) { return word.starts_with(flag); });
}

/// The text protocol of memcached, with its meta commands.
class MemcachedProtocol final : public Protocol {
 public:
  explicit MemcachedProtocol(const PoolSettings& settings)
      : pool_(settings.name),
        strict_(settings.compat == Compat::strict),
        request_size_limit_(settings.request_size_limit),
        request_words_limit_(settings.request_words_limit),
        reply_size_limit_(settings.reply_size_limit),
        allow_(settings.allow) {}

  std::unique_ptr<RequestReader> request_reader() const override {
    return std::make_unique<MemcachedRequestReader>(MemcachedLimits{
        .whole = request_size_limit_, .words = request_words_limit_, .strict = strict_});
  }
  std::unique_ptr<ReplyReader> reply_reader() const override {
    return std::make_unique<MemcachedReplyReader>(reply_size_limit_);
  }
  Plan plan(Words words) override;
  void append_fragment(std::string& out, Words words, const Plan& plan,
                       std::span<const std::uint32_t> keys) const override;
  void append_merged(std::string& out, Words words, const Plan& plan,
                     std::span<const FragmentReply> replies, bool partial) const override {
    append_merged_replies(out, words, plan, replies,
                          strict_   ? MergeStyle::twemproxy
                          : partial ? MergeStyle::partial
                                    : MergeStyle::whole);
  }
  void append_failure(std::string& out, Failure failure) const override;
  Effect effect_of(const Plan& plan, Words words) const override;
  bool is_silent(Quiet quiet, std::string_view reply) const noexcept override {
    const bool hit = reply.starts_with("HD") || reply.starts_with("VA ");
    return (quiet == Quiet::hit && hit) || (quiet == Quiet::miss && reply.starts_with("EN"));
  }
  bool is_server_trouble(std::string_view) const noexcept override { return false; }
  void trim() noexcept override {
    constexpr std::size_t usual = 1024;
    if (keys_.capacity() > usual) keys_ = {};
  }
  std::string_view health_question() const noexcept override { return "version\r\n"; }
  bool is_healthy(std::string_view reply) const noexcept override {
    return reply.starts_with("VERSION ");
  }
  std::string_view command_name(std::uint16_t command) const noexcept override {
    const auto commands = memcached_commands();
    return command < commands.size() ? commands[command].name : "unknown";
  }
  std::size_t command_count() const noexcept override { return memcached_commands().size() + 1; }

 private:
  using Command = MemcachedCommand;

  Plan serve(const Command& command, Plan plan, Words words, Words line);
  Plan serve_keys(const Command& command, Plan plan, Words line);
  Plan serve_meta(const Command& command, Plan plan, Words words, Words line);
  Plan serve_all(const Command& command, Plan plan, Words line);
  Plan refuse(Plan plan, std::string_view reply) const;
  Plan refuse_command(const Command& command, Plan plan, std::string_view why);

  std::string pool_;
  bool strict_;
  std::size_t request_size_limit_, request_words_limit_, reply_size_limit_;
  std::vector<std::string> allow_;
  std::vector<std::size_t> keys_;
  std::vector<std::string_view> aloud_;
  std::string reply_, forward_, routing_key_;  // what a Plan views
};

Plan MemcachedProtocol::plan(Words words) {
  const auto* const command = find_memcached_command(words[0]);
  Plan plan;
  plan.command = static_cast<std::uint16_t>(
      command != nullptr ? command - memcached_commands().data() : memcached_commands().size());
  const bool has_data = command != nullptr && command->has_data();  // the reader has seen to it
  const auto line = words.first(words.size() - (has_data ? 1 : 0));
  if (strict_ && (command == nullptr || !twemproxy_takes(*command, line))) {
    plan.route = Route::close;
    plan.drop_pending = true;
    return plan;
  }
  if (command == nullptr) return refuse(plan, "ERROR\r\n");
  plan.expects_reply = !command->is_silent(line);
  if (strict_ || has_data) return serve(*command, plan, words, line);
  if (const auto fault = fault_of(*command, line); !fault.empty()) return refuse(plan, fault);
  return serve(*command, plan, words, line);
}

Plan MemcachedProtocol::serve(const Command& command, Plan plan, Words words, Words line) {
  switch (command.kind) {
    case get:
    case get_and_touch: return serve_keys(command, plan, line);
    case store:
    case change:
      plan.route = Route::one;
      plan.keys = first_argument;
      return plan;
    case meta_get:
    case meta_set:
    case meta_change:
    case meta_debug: return serve_meta(command, plan, words, line);
    case meta_no_op:
      plan.route = Route::local;
      plan.reply = "MN\r\n";
      return plan;
    case version: plan.route = Route::any; return plan;
    case quit:
      plan.route = Route::close;
      plan.is_wish = true;
      return plan;
    case all_stats:
    case all_ok: return serve_all(command, plan, line);
    case never:
      return refuse_command(command, plan, "cannot be served by a proxy: ask the server itself");
  }
  return plan;
}

Plan MemcachedProtocol::serve_keys(const Command& command, Plan plan, Words line) {
  keys_.clear();
  for (std::size_t at = command.key_at; at < line.size(); ++at) keys_.push_back(at);
  plan.keys = keys_;
  plan.route = keys_.size() > 1 ? Route::homes : Route::one;
  plan.merge = Merge::by_key;
  plan.read_only = command.kind == get;
  return plan;
}

/// Servers do not see the quiet flag: from a server that answers only some requests nobody knows
/// which request a reply belongs to. is_silent() drops what the flag asked to drop.
Plan MemcachedProtocol::serve_meta(const Command& command, Plan plan, Words words, Words line) {
  const auto flags = line.subspan(command.least);
  plan.route = Route::one;
  plan.keys = first_argument;
  plan.read_only = command.kind == meta_debug;
  if (has_flag(flags, 'b')) {
    // The ring goes by the bytes behind it. RFC 4648 with its padding, as memcached reads it.
    const auto key = from_base64(line[1]);
    if (!key || key->empty()) return refuse(plan, "CLIENT_ERROR error decoding key\r\n");
    routing_key_ = *key;
    plan.routing_key = routing_key_;
  }
  if (has_flag(flags, 'q')) {
    plan.quiet = command.kind == meta_get ? Quiet::miss : Quiet::hit;
    aloud_.assign(line.begin(), line.end());
    const auto flags_at = aloud_.begin() + command.least;
    aloud_.erase(std::remove_if(flags_at, aloud_.end(),
                                [](std::string_view word) { return word.starts_with('q'); }),
                 aloud_.end());
    forward_.clear();
    append_memcached_line(forward_, aloud_);
    if (words.size() > line.size()) forward_.append(words.back()).append("\r\n");
    plan.forward = forward_;
  }
  return plan;
}

/// Each server answers, whatever the client has asked: replies are what is counted.
Plan MemcachedProtocol::serve_all(const Command& command, Plan plan, Words line) {
  if (std::ranges::find(allow_, command.name) == allow_.end())
    return refuse_command(
        command, plan,
        fmt::format("is not served here: name it in the setting `allow` of pool '{}'", pool_));
  plan.route = Route::every;
  plan.merge = command.kind == all_stats ? Merge::concatenate : Merge::all_ok;
  if (plan.expects_reply) return plan;
  forward_.clear();
  append_memcached_line(forward_, line.first(line.size() - 1));
  plan.forward = forward_;
  plan.expects_reply = true;
  plan.quiet = Quiet::all;
  return plan;
}

/// A request with noreply gets no error either, as from memcached.
Plan MemcachedProtocol::refuse(Plan plan, std::string_view reply) const {
  plan.route = Route::refused;
  plan.keys = {};
  plan.reply = plan.expects_reply ? reply : std::string_view{};
  return plan;
}

Plan MemcachedProtocol::refuse_command(const Command& command, Plan plan, std::string_view why) {
  reply_ = fmt::format("SERVER_ERROR '{}' {}\r\n", command.name, why);
  return refuse(plan, reply_);
}

void MemcachedProtocol::append_fragment(std::string& out, Words words, const Plan& plan,
                                        std::span<const std::uint32_t> keys) const {
  for (const auto word : words.first(plan.keys.front())) {
    out += word;
    out += ' ';
  }
  for (const auto key : keys) {
    out += words[plan.keys[key]];
    if (key != keys.back() || strict_) out += ' ';  // as twemproxy writes it
  }
  out += "\r\n";
}

/// A `cas unique` is of one server: who compares it with that of another stores nothing.
Effect MemcachedProtocol::effect_of(const Plan& plan, Words words) const {
  const auto commands = memcached_commands();
  if (plan.command >= commands.size() || plan.route == Route::refused) return {};
  const auto& command = commands[plan.command];
  using enum Effect::Kind;
  const auto flags = [&] {
    return words.subspan(command.least,
                         words.size() - command.least - (command.has_data() ? 1 : 0));
  };
  switch (command.kind) {
    case get: return {read, command.name == "get"};
    case get_and_touch: return {write, command.name == "gat"};
    case store: return {command.name == "cas" ? single : write};
    case change: return {write};
    case meta_get: {
      const bool changes = has_flag(flags(), 'N') || has_flag(flags(), 'T');
      const bool unlike = std::ranges::any_of(flags(), [](std::string_view word) {
        return std::string_view{"chlt"}.contains(word.front());
      });
      return {changes ? write : read, !unlike};
    }
    case meta_set:
    case meta_change: return {has_flag(flags(), 'C') ? single : write, !has_flag(flags(), 'c')};
    case all_ok: return {command.name == "flush_all" ? write : none};
    default: return {};
  }
}

void MemcachedProtocol::append_failure(std::string& out, Failure failure) const {
  static constexpr std::array<std::string_view, 10> rows{
      "Connection refused",
      "Connection timed out",
      "Connection reset by peer",
      "Host is down",
      "Invalid argument",
      "unknown",
      "the keys are on different servers",
      "the proxy is at a limit of its own, nothing was done: try again later",
      "the server's reply is beyond reply_size_limit",
      "rate limit of this address reached, nothing was done: try again later",
  };
  out += "SERVER_ERROR ";
  out += rows[static_cast<std::size_t>(failure)];
  out += "\r\n";
}

}  // namespace

std::unique_ptr<Protocol> make_memcached_protocol(const PoolSettings& settings, std::size_t) {
  return std::make_unique<MemcachedProtocol>(settings);
}

}  // namespace sluice::proxy
