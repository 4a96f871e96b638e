#include "proxy/redis/redis_protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/redis/readers.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy {
namespace {

/// Scripts may write, whatever they are for, and so may what brings them.
constexpr std::string_view script_commands[] = {"eval", "evalsha", "fcall", "script|load",
                                                "script|flush"};
/// Replies to these are not the same on servers with the same data.
constexpr std::string_view unlike_commands[] = {
    "dump",     "expiretime", "hgetall",     "hkeys",      "hrandfield",  "httl",
    "hpttl",    "hvals",      "hscan",       "object",     "pexpiretime", "pttl",
    "sdiff",    "sinter",     "smembers",    "spop",       "srandmember", "sscan",
    "sunion",   "ttl",        "xadd",        "xautoclaim", "xclaim",      "xinfo",
    "xpending", "xreadgroup", "zrandmember", "zscan",      "memory"};

bool is_among(std::span<const std::string_view> names, std::string_view name) noexcept {
  return std::ranges::find(names, name) != names.end() ||
         std::ranges::find(names, name.substr(0, name.find('|'))) != names.end();
}

bool is_first_argument(const resp::CommandSpec& spec) noexcept {
  return spec.first_key == 1 && spec.last_key == 1 && spec.rule == resp::KeyRule::none;
}

/// Channels route as keys do; to resp's table most of them are plain arguments.
struct ChannelRow {
  std::string_view name;
  std::uint8_t first;
};
constexpr ChannelRow channel_rows[] = {
    {"subscribe", 1},    {"unsubscribe", 1},   {"ssubscribe", 1},
    {"sunsubscribe", 1}, {"pubsub|numsub", 2}, {"pubsub|shardnumsub", 2},
};

bool has_star(std::string_view text) noexcept { return text.find('*') != std::string_view::npos; }

bool tells_its_home(std::string_view pattern, std::optional<HashTag> tag) noexcept {
  const auto part = hashed_part(pattern, tag);
  return part.size() < pattern.size() && !has_star(part);
}

/// SORT reads more keys than it names: those that BY and GET make of a pattern and each element.
/// Adds the positions of the patterns whose hash tag tells the home of all the keys that they make.
/// False: a pattern has no such tag, so its keys may be anywhere.
bool add_sort_patterns(Words words, std::optional<HashTag> tag, std::vector<std::size_t>& keys) {
  for (std::size_t at = 2; at + 1 < words.size(); ++at) {
    if (resp::is_word(words[at], "limit")) {
      at += 2;
    } else if (resp::is_word(words[at], "store")) {
      ++at;
    } else if (resp::is_word(words[at], "by") || resp::is_word(words[at], "get")) {
      const auto pattern = words[++at];
      if (!has_star(pattern)) continue;  // "nosort", "#": no key is read
      if (!tells_its_home(pattern, tag)) return false;
      keys.push_back(at);
    }
  }
  return true;
}

}  // namespace

RedisProtocol::RedisProtocol(const PoolSettings& settings)
    : pool_(settings.name),
      hash_tag_(settings.is_of_cluster() ? HashTag{'{', '}'} : settings.hash_tag),
      is_of_cluster_(settings.is_of_cluster()),
      request_size_limit_(settings.request_size_limit),
      request_words_limit_(settings.request_words_limit),
      reply_size_limit_(settings.reply_size_limit),
      taught_(settings.commands) {
  for (const auto& spec : resp::all_commands()) rows_.push_back(row_of(spec, settings));
  rows_.emplace_back();
  for (const auto& spec : taught_.all()) {
    auto& row = rows_.emplace_back(row_of(spec, settings));
    if (!taught_.is_whole(spec) || !settings.spreads_keys()) continue;
    row.route = {.never = Never::spread};
    row.plan.route = Route::refused;
  }
  for (const auto& user : settings.users)
    if (!user.acl.empty()) rights_.try_emplace(user.name, user.acl, taught_);
}

RedisProtocol::Row RedisProtocol::row_of(const resp::CommandSpec& spec,
                                         const PoolSettings& settings) const {
  Row row;
  row.route = route_of(spec).value_or(RedisRoute{.route = Route::any});
  row.plan.route = row.route.route;
  if (row.route.needs_consent && !is_allowed(spec.name, settings.allow))
    row.plan.route = Route::refused;
  row.plan.verb = row.route.verb;
  row.plan.merge = row.route.merge;
  row.plan.read_only = spec.has(resp::flag_readonly);
  row.plan.command = static_cast<std::uint16_t>(spec.index);
  row.plan.words_per_key = static_cast<std::uint8_t>(std::max(spec.key_step, 1));
  const auto* const channels = std::ranges::find(channel_rows, spec.name, &ChannelRow::name);
  if (channels != std::end(channel_rows)) {
    row.keys = Keys::rest;
    row.first_key = channels->first;
    row.plan.items_per_key = 2;
  } else if (spec.name.starts_with("sort") && settings.spreads_keys()) {
    row.keys = Keys::sort;
  } else if (is_first_argument(spec) || spec.name == "publish") {
    row.keys = Keys::first;
  } else if (spec.first_key != 0 || spec.rule != resp::KeyRule::none) {
    row.keys = Keys::by_rule;
  }
  return row;
}

Plan RedisProtocol::plan(Words words) {
  const auto* spec = resp::find_command(words);
  if (spec == nullptr && !is_http(words)) spec = taught_.find(words[0]);
  if (spec == nullptr)
    return refused(static_cast<std::uint16_t>(resp::all_commands().size()),
                   unknown_command(words, pool_));
  const auto& row = rows_[spec->index];
  if (!spec->arity_fits(words.size())) return refused(row.plan.command, wrong_arity(spec->name));
  if (row.keys == Keys::first && row.plan.route == Route::one) {
    Plan plan = row.plan;
    plan.keys = first_argument;
    return plan;
  }
  if (row.plan.route == Route::refused) return refuse(*spec, row);
  if (row.plan.route == Route::local || row.plan.route == Route::close)
    return plan_local(*spec, row, words);
  return row.keys == Keys::none ? row.plan : plan_keys(*spec, row, words);
}

Plan RedisProtocol::plan_keys(const resp::CommandSpec& spec, const Row& row, Words words) {
  Plan plan = row.plan;
  if (row.keys == Keys::rest) {
    keys_.clear();
    for (std::size_t at = row.first_key; at < words.size(); ++at) keys_.push_back(at);
  } else if (!resp::keys_of(spec, words, keys_)) {
    return refused(plan.command, error_reply(resp::unknown_keys(spec, words)));
  }
  if (row.keys == Keys::sort && !add_sort_patterns(words, hash_tag_, keys_))
    return refused(plan.command,
                   error_reply("BY and GET of SORT would read keys of other servers: give their "
                               "patterns a hash tag"));
  plan.keys = keys_;
  if (plan.words_per_key > 1 && keys_.back() + plan.words_per_key > words.size())  // MSET k v k
    return refused(plan.command, wrong_arity(spec.name));
  if (plan.verb == SessionVerb::blocking && spec.rule == resp::KeyRule::streams &&
      !resp::waiting_time(spec, words)) {
    plan.route = Route::one;
    plan.verb = SessionVerb::none;
  }
  if (plan.route == Route::homes && keys_.size() == 1) plan.route = Route::one;
  if (keys_.empty() && (plan.route == Route::one || plan.route == Route::homes))
    plan.route = Route::any;
  return plan;
}

Plan RedisProtocol::plan_local(const resp::CommandSpec& spec, const Row& row, Words words) {
  Plan plan = row.plan;
  reply_.clear();
  resp::ReplyWriter writer{reply_};
  if (spec.name == "quit") {
    plan.is_wish = true;
    writer.simple("OK");
  } else if (words.size() == 2) {
    writer.bulk(words[1]);
  } else if (words.size() == 1) {
    writer.simple("PONG");
  } else {
    reply_ = wrong_arity(spec.name);
  }
  plan.reply = reply_;
  return plan;
}

Plan RedisProtocol::refuse(const resp::CommandSpec& spec, const Row& row) {
  if (!row.route.needs_consent)
    return refused(row.plan.command, not_served(spec.name, row.route.never));
  return refused(row.plan.command,
                 error_reply(fmt::format(
                     "'{}' is not served here: name it in the setting `allow` of pool '{}'",
                     spec.name, pool_)));
}

Plan RedisProtocol::refused(std::uint16_t command, std::string reply) {
  reply_ = std::move(reply);
  Plan plan;
  plan.command = command;
  plan.reply = reply_;
  return plan;
}

std::unique_ptr<RequestReader> RedisProtocol::request_reader(bool strict) const {
  resp::RequestLimits limits;
  limits.bulk = std::min(limits.bulk, request_size_limit_);
  limits.whole = request_size_limit_;
  limits.words = request_words_limit_;
  return std::make_unique<RedisRequestReader>(limits, strict);
}

std::unique_ptr<RequestReader> RedisProtocol::request_reader() const {
  return request_reader(false);
}

std::unique_ptr<ReplyReader> RedisProtocol::reply_reader() const {
  return std::make_unique<RedisReplyReader>(reply_size_limit_);
}

/// The words before the keys, the name in lower case as twemproxy writes it, then the keys and
/// their values.
void RedisProtocol::append_fragment(std::string& out, Words words, const Plan& plan,
                                    std::span<const std::uint32_t> keys) const {
  const auto before = words.first(plan.keys.front());
  resp::append_command_header(out, before.size() + keys.size() * plan.words_per_key);
  const auto name_at = out.size();
  resp::append_bulk(out, before.front());
  std::transform(out.begin() + static_cast<std::ptrdiff_t>(name_at), out.end(),
                 out.begin() + static_cast<std::ptrdiff_t>(name_at), resp::lower);
  for (const auto word : before.subspan(1)) resp::append_bulk(out, word);
  for (const auto key : keys)
    for (const auto word : words.subspan(plan.keys[key], plan.words_per_key))
      resp::append_bulk(out, word);
}

void RedisProtocol::append_merged(std::string& out, Words, const Plan& plan,
                                  std::span<const FragmentReply> replies, bool partial) const {
  append_merged_replies(out, plan, replies, {.partial = partial});
}

void RedisProtocol::append_failure(std::string& out, Failure failure) const {
  out += is_of_cluster_ && failure == Failure::crossed
             ? "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
             : failure_reply(failure);
}

Effect RedisProtocol::effect_of(const Plan& plan, Words) const {
  const auto specs = resp::all_commands();
  if (plan.command == specs.size()) return {};
  const auto& spec = plan.command < specs.size()
                         ? specs[plan.command]
                         : taught_.all()[plan.command - TaughtCommands::first_index()];
  using enum Effect::Kind;
  const bool alike = !is_among(unlike_commands, spec.name);
  const bool writes = plan.command < specs.size()
                          ? spec.has(resp::flag_write) || is_among(script_commands, spec.name)
                          : !spec.has(resp::flag_readonly);
  if (plan.route == Route::refused || plan.route == Route::local) return {};
  if (writes)
    return {plan.verb == SessionVerb::blocking || spec.name == "migrate" ? single : write, alike};
  const bool has_home = plan.route == Route::one || plan.route == Route::homes;
  return {plan.read_only && has_home ? read : none, alike};
}

bool RedisProtocol::is_server_trouble(std::string_view reply) const noexcept {
  if (!reply.starts_with('-')) return false;
  static constexpr std::array<std::string_view, 3> troubles{"-OOM", "-BUSY", "-LOADING"};
  return std::ranges::any_of(troubles, [reply](std::string_view trouble) {
    const auto rest = reply.substr(std::min(reply.size(), trouble.size()));
    return reply.starts_with(trouble) && (rest.starts_with(' ') || rest.starts_with('\r'));
  });
}

bool RedisProtocol::is_welcome(std::string_view reply) const noexcept {
  return !reply.starts_with('-') || topology::is_without_password(reply);
}

void RedisProtocol::trim() noexcept {
  constexpr std::size_t usual = 1024;
  if (keys_.capacity() > usual) keys_ = {};
}

std::string_view RedisProtocol::health_question() const noexcept { return "*1\r\n$4\r\nPING\r\n"; }

bool RedisProtocol::is_healthy(std::string_view reply) const noexcept {
  return reply.starts_with("+PONG") || reply.starts_with("-NOPERM");  // it answers its users
}

std::string_view RedisProtocol::command_name(std::uint16_t command) const noexcept {
  const auto specs = resp::all_commands();
  if (command < specs.size()) return specs[command].name;
  const auto first = TaughtCommands::first_index();
  return command < first ? "unknown" : taught_.all()[command - first].name;
}

std::size_t RedisProtocol::command_count() const noexcept { return rows_.size(); }

Rights* RedisProtocol::rights_of(std::string_view user) noexcept {
  const auto rights = rights_.find(user);
  return rights == rights_.end() ? nullptr : &rights->second;
}

std::unique_ptr<Protocol> make_redis_protocol(const PoolSettings& settings, std::size_t mbuf_size) {
  if (settings.compat == Compat::strict)
    return std::make_unique<StrictRedisProtocol>(settings, mbuf_size);
  return std::make_unique<RedisProtocol>(settings);
}

}  // namespace sluice::proxy
