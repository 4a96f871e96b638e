// Compat::strict: what twemproxy 0.5.0 does with each command, by its own table.
#include "base/integer.hpp"
#include "proxy/redis/redis_protocol.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t eval_key[] = {3};

/// Of the buffer of `mbuf_size` bytes twemproxy's own header takes these.
constexpr std::size_t mbuf_header = 48;

/// "numkeys" of EVAL as twemproxy reads it: digits, and not all of them 0.
bool is_count(std::string_view text) noexcept {
  return is_digits(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

StrictRedisProtocol::StrictRedisProtocol(const PoolSettings& settings, std::size_t mbuf_size)
    : RedisProtocol(settings),
      password_(settings.redis_auth),
      key_limit_(mbuf_size - mbuf_header),
      rows_(resp::all_commands().size()) {
  const auto add = [this](std::string_view name, StrictRow row) {
    const auto* const spec = resp::find_command(name);
    row.read_only = spec->has(resp::flag_readonly);
    rows_[spec->index] = row;
  };
#define KEY(name, shape, words) add(name, {Shape::shape, Serves::key, words});
#define FRAGMENTS(name, shape, words, merge) \
  add(name, {Shape::shape, Serves::fragments, words, Merge::merge});
#define LOCAL(name, shape, words, serves) add(name, {Shape::shape, Serves::serves, words});
#include "proxy/redis/twemproxy_commands.def"
#undef KEY
#undef FRAGMENTS
#undef LOCAL
}

std::unique_ptr<RequestReader> StrictRedisProtocol::request_reader() const {
  return RedisProtocol::request_reader(true);
}

bool StrictRedisProtocol::shape_fits(const StrictRow& row, Words words) noexcept {
  switch (row.shape) {
    case Shape::unknown: return false;
    case Shape::exactly: return words.size() == row.words;
    case Shape::at_least: return words.size() >= row.words;
    case Shape::pairs: return words.size() >= row.words && words.size() % 2 == 1;
    case Shape::eval: return words.size() >= row.words && is_count(words[2]);
  }
  return false;
}

Plan StrictRedisProtocol::plan(Words words) {
  const auto* const spec = resp::find_command(words[0]);
  const auto command = static_cast<std::uint16_t>(spec != nullptr ? spec->index : rows_.size());
  if (spec != nullptr && shape_fits(rows_[command], words))
    return serve(rows_[command], command, words);
  Plan plan;
  plan.route = Route::close;
  plan.drop_pending = true;
  plan.command = command;
  return plan;
}

bool StrictRedisProtocol::find_keys(const StrictRow& row, Words words) {
  keys_.clear();
  const std::size_t step = row.shape == Shape::pairs ? 2 : 1;
  for (std::size_t at = 1; at < words.size(); at += step) {
    if (words[at].size() >= key_limit_) return false;
    keys_.push_back(at);
  }
  return true;
}

Plan StrictRedisProtocol::serve(const StrictRow& row, std::uint16_t command, Words words) {
  Plan plan;
  plan.command = command;
  plan.read_only = row.read_only;
  plan.route = Route::one;
  switch (row.serves) {
    case Serves::key:
      plan.keys = row.shape == Shape::eval ? eval_key : first_argument;
      if (words[plan.keys.front()].size() < key_limit_) return plan;
      break;
    case Serves::fragments:
      plan.merge = row.merge;
      plan.words_per_key = row.shape == Shape::pairs ? 2 : 1;
      if (!find_keys(row, words)) break;
      plan.keys = keys_;
      if (keys_.size() > 1) plan.route = Route::homes;
      return plan;
    case Serves::placeholder: plan.route = Route::any; return plan;
    case Serves::ping:
      plan.route = Route::local;
      plan.reply = "+PONG\r\n";
      return plan;
    case Serves::auth: return authenticate(plan, words);
    case Serves::quit:
      plan.route = Route::close;
      plan.is_wish = true;
      return plan;
  }
  plan.route = Route::close;
  plan.drop_pending = true;
  plan.keys = {};
  return plan;
}

Plan StrictRedisProtocol::authenticate(Plan plan, Words words) {
  plan.route = Route::session;
  plan.verb = SessionVerb::auth;
  if (password_.empty())
    plan.reply = "-ERR Client sent AUTH, but no password is set\r\n";
  else
    plan.reply = words[1] == password_ ? "+OK\r\n" : "-ERR invalid password\r\n";
  return plan;
}

void StrictRedisProtocol::append_merged(std::string& out, Words, const Plan& plan,
                                        std::span<const FragmentReply> replies, bool) const {
  append_merged_replies(out, plan, replies, {.strict = true});
}

}  // namespace sluice::proxy
