#include "lock/simulation/mutation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "base/sha1.hpp"

namespace sluice::simulation {
namespace {

constexpr std::string_view is_mine = "call('HGET', lock, 'sluice:request') ~= ARGV[1]";
constexpr std::string_view claim = "call('PEXPIRE', lock, claim)";
// Part next_token, and what lock/mutex/acquire has in its place.
constexpr std::string_view of_time = "local token = asked_us + many";
constexpr std::string_view of_time_at_once =
    "local token = tonumber(time[1]) * 1000000 + tonumber(time[2]) + 1";
constexpr std::string_view is_passed = "not last or last + many > token";
constexpr std::string_view is_passed_at_once = "not last or last >= token";
constexpr std::string_view stands = "local token = 1e15";
constexpr std::string_view of_counter =
    "local token = (tonumber(call('GET', KEYS[2]) or nil) or time[1] * 1000000 + time[2]) + 1";

constexpr std::string_view keeps_promise = "return till and till >= server_time()";
constexpr std::string_view runs = "return listens(inbox) and not (till and till < server_time())";
constexpr std::string_view listeners = "tonumber(redis.call('PUBSUB', 'NUMSUB', channel)[2]) > 0";

const Mutation none{.name = "", .about = "nothing"};

const std::vector<Mutation> mutations{
    {.name = "release-without-owner",
     .about = "a release ends whoever's hold",
     .swaps = {{"lock/mutex/release", is_mine, "false"}}},
    {.name = "acquire-without-look",
     .about = "an acquire does not look whether the lock is free",
     .swaps = {{"lock/mutex/acquire", "not held and chance_left == 0", "true"}}},
    {.name = "renew-after-release",
     .about = "a renewal that knows no owner comes behind the release",
     .swaps = {{"lock/mutex/renew", "redis.pcall('HGET', key, 'sluice:request') == ARGV[at]",
                "true"}},
     .renews_after_release = true},
    {.name = "subscribe-after-look",
     .about = "the subscription begins after it was confirmed",
     .subscribes_late = true,
     .heals = true},
    {.name = "lost-grant", .about = "grants are not heard", .loses_grants = true, .heals = true},
    {.name = "no-gap",
     .about = "a lost connection leaves no gap",
     .hides_gaps = true,
     .heals = true},
    {.name = "no-claim",
     .about = "a hold that was handed over does not end by itself",
     .swaps = {{"lock/mutex/release", claim, "call('PERSIST', lock)"}}},
    {.name = "ticket-stays",
     .about = "who gives up stays in the queue",
     .swaps = {{"lock/mutex/release", "leave_queue(KEYS[3], KEYS[4], ARGV[4])", ""}}},
    {.name = "token-stands",
     .about = "the fencing counter does not count",
     .swaps = {{"lock/mutex/acquire", of_time_at_once, stands},
               {"lock/mutex/acquire", is_passed_at_once, "false"},
               {"lock/mutex/release", of_time, stands},
               {"lock/mutex/release", is_passed, "false"},
               {"lock/mutex/pass", of_time, stands},
               {"lock/mutex/pass", is_passed, "false"}}},
    {.name = "granted-ticket-stays",
     .about = "who was handed the lock is still in the queue",
     .profile = "durable",
     .swaps = {{"lock/mutex/release", "call('LPOP', queue)", ""},
               {"lock/mutex/release", "call('DEL', lock, queue, KEYS[at + 3])",
                "call('DEL', lock)"}}},
    {.name = "fair-without-order",
     .about = "the last who came is first",
     .primitive = "fair",
     .swaps = {{"lock/fair/acquire", "or call('RPUSH', KEYS[2], me) - 1",
                "or call('LPUSH', KEYS[2], me) - 1"}}},
    {.name = "write-beside-readers",
     .about = "a writer does not look for readers",
     .primitive = "shared",
     .swaps = {{"lock/shared/acquire", "may, chance_left = writes",
                "may, chance_left = writes or kind == 'w'"}}},
    {.name = "read-beside-writer",
     .about = "a reader does not look for a writer",
     .primitive = "shared",
     .swaps = {{"lock/shared/acquire", "may, chance_left = writes",
                "may, chance_left = writes or kind == 'r'"}}},
    {.name = "permits-without-end",
     .about = "a permit is taken from nothing",
     .primitive = "semaphore",
     .swaps = {{"lock/semaphore/acquire", "free >= tonumber(count)", "true"}}},
    {.name = "permits-of-the-dead",
     .about = "what a release does not find it gives back all the same",
     .primitive = "permit",
     .swaps = {{"lock/semaphore/release", "local permits = give_back(ARGV[i])",
                "local permits = give_back(ARGV[i]); "
                "if permits == 0 then call('INCRBY', KEYS[1], 1) end"}}},
    {.name = "tokens-of-the-counter",
     .about = "a token is the counter's next, whatever the time",
     .profile = "snapshot",
     .swaps = {{"lock/mutex/acquire", of_time_at_once, of_counter},
               {"lock/mutex/release", is_passed, "true"},
               {"lock/mutex/pass", is_passed, "true"}}},
    {.name = "wait-lies",
     .about = "WAIT says that a replica has what it has not",
     .profile = "promotion",
     .wait_lies = true},
    {.name = "renewal-needs-memory",
     .about = "a renewal writes before it prolongs",
     .profile = "memory",
     .swaps = {{"lock/mutex/renew", "redis.call('PEXPIRE', key, ARGV[at + 1])",
                "redis.call('HSET', key, 'sluice:renewed', 1)"}}},
    {.name = "stopped-keep-their-tickets",
     .about = "a process that breaks its promise to look is waited for",
     .primitive = "fair",
     .profile = "stopped",
     .swaps = {{"lock/fair/acquire", runs, "return listens(inbox)"},
               {"lock/fair/release", runs, "return listens(inbox)"}}},
    {.name = "cluster-drops-who-comes",
     .about = "a process that is not heard at the node where the slot came to is dead",
     .primitive = "fair",
     .profile = "cluster",
     .swaps = {{"lock/fair/acquire", keeps_promise, "return false and till"},
               {"lock/fair/release", keeps_promise, "return false and till"}}},
    {.name = "cluster-rests-as-elsewhere",
     .about = "a process far behind is handed the lock unheard, and looks when that is over",
     .primitive = "shared",
     .profile = "cluster",
     .swaps = {{"lock/shared/acquire", "rest = math.min(rest, 1000 - server_time() % 250)", ""}}},
    {.name = "the-dead-listen",
     .about = "nobody finds out that a process is dead",
     .primitive = "fair",
     .profile = "killed",
     .swaps = {{"lock/fair/acquire", runs, "return true"},
               {"lock/fair/release", runs, "return true"},
               {"lock/fair/acquire", listeners, "true"},
               {"lock/fair/release", listeners, "true"}}},
    {.name = "publish-counts",
     .about = "whoever hears a message of any kind is taken for the process",
     .primitive = "fair",
     .profile = "bystander",
     .swaps = {{"lock/fair/acquire", runs, "return true"},
               {"lock/fair/release", runs, "return true"},
               {"lock/fair/acquire", listeners, "redis.call('PUBLISH', channel, '') > 0"},
               {"lock/fair/release", listeners, "redis.call('PUBLISH', channel, '') > 0"}}},
    {.name = "seldom-looks",
     .about = "who waits looks every half a minute",
     .profile = "outside",
     .swaps = {{"lock/mutex/acquire", "pace or 1000 - server_time() % 250", "30000"}}},
    {.name = "splits-owners",
     .about = "two acquires of one owner wait for each other",
     .profile = "owners",
     .splits_owners = true},
    {.name = "callbacks-inside",
     .about = "a callback that blocks stops renewals",
     .profile = "blocked",
     .calls_back_inside = true},
    {.name = "one-timeout-for-all",
     .about = "the shortest lease bounds how long any renewal is waited for",
     .profile = "leases",
     .hurries_renewals = true},
    {.name = "claims-are-short",
     .about = "a process has less time to take a lock over than a slow server needs to tell it",
     .profile = "slow",
     .swaps = {{"lock/mutex/release", claim, "call('PEXPIRE', lock, 100)"}}},
    {.name = "give-ups-overtake",
     .about = "what a caller gives up arrives before what it asked for",
     .profile = "durable",
     .overtakes = true},
    {.name = "clocks-beyond-the-margin",
     .about = "a clock is a tenth too slow",
     .profile = "clocks",
     .drift = 0.1},
    {.name = "clock-stands-suspended",
     .about = "the steady clock stands still while a machine is suspended",
     .profile = "suspend",
     .stands_suspended = true},
};

/// Stands before a script, in its first line, so that the lines keep their numbers.
constexpr std::string_view prelude = "local redis = ({})(redis, {}, {}, {}, {}) ";

/// As redis 7 does: from its first write on a script may use memory.
constexpr std::string_view meets = R"(
function(redis, full, bystanders, node, deaf)
  local needs, writes, wrote = {}, {}, false
  for word in string.gmatch('APPEND DECRBY HINCRBY HMSET HSET HSETNX INCR INCRBY LINSERT LPUSH ' ..
                            'LSET RPUSH SADD SET SETBIT SETEX ZADD ZINCRBY', '%S+') do
    needs[word], writes[word] = true, true
  end
  for word in string.gmatch('DEL HDEL LPOP LREM LTRIM PERSIST PEXPIRE PEXPIREAT RPOP SREM ' ..
                            'UNLINK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE', '%S+') do
    writes[word] = true
  end
  local sweeps = false
  local function of_cluster(does, ...)
    local name, key, field = ...
    if name == 'CLUSTER' then return 'node' .. node end
    if name ~= 'HDEL' then sweeps = name == 'HKEYS' or name == 'HGETALL' end
    if name == 'HDEL' and not sweeps and string.sub(field, 1, 13) == 'sluice:inbox:' and
       string.sub(field, -6) ~= ' heard' then
      redis.call('PUBLISH', 'simulation:dropped', field)
    end
    if name ~= 'SPUBLISH' and key ~= 'SHARDNUMSUB' then return does(...) end
    if name == 'SPUBLISH' then return deaf and 0 or does('PUBLISH', key, field) end
    local counts = does(name, 'NUMSUB', select(3, ...))
    for i = 2, deaf and #counts or 0, 2 do counts[i] = 0 end
    return counts
  end
  local function guarded(does, fails)
    return function(name, ...)
      if node > 0 then return of_cluster(does, name, ...) end
      if full and needs[name] and not wrote then
        return fails('OOM command not allowed')
      end
      wrote = wrote or writes[name]
      local reply = does(name, ...)
      return name == 'PUBLISH' and reply + bystanders or reply
    end
  end
  local function raise(text) error(text, 3) end
  local function give(text) return {err = text} end
  return setmetatable({call = guarded(redis.call, raise), pcall = guarded(redis.pcall, give)},
                      {__index = redis})
end
)";

std::string one_line(std::string_view text) {
  std::string line{text};
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace

std::span<const Mutation> all_mutations() { return mutations; }

const Mutation& mutation_named(std::string_view name) {
  if (name.empty()) return none;
  const auto found = std::ranges::find(mutations, name, &Mutation::name);
  if (found == mutations.end())
    throw std::invalid_argument{fmt::format("there is no mutation '{}'", name)};
  return *found;
}

const Script& Scripts::of(const Script& plain, const ScriptTerms& terms) {
  const bool is_sharded = terms.node > 0 && plain.sharded;
  const Script& script = is_sharded ? *plain.sharded : plain;
  if (mutation_.swaps.empty() && terms == ScriptTerms{} && !branches_) return script;
  for (const auto& made : made_)
    if (made->original == &script && made->terms == terms) return made->script;
  const bool counts = branches_ && !is_sharded && script.name.starts_with("lock/");
  auto made = std::make_unique<Made>(&script, terms,
                                     counts ? branches_->mark(script) : std::string{script.text});
  for (const auto& [name, from, to] : mutation_.swaps) {
    if (name != script.name) continue;
    const auto at = made->text.find(from);
    if (at == std::string::npos)
      throw std::logic_error{fmt::format("{} has no '{}' to mutate", name, from)};
    made->text.replace(at, from.size(), to);
  }
  if (terms != ScriptTerms{})
    made->text.insert(0, fmt::format(prelude, one_line(meets), terms.full, terms.bystanders,
                                     terms.node, terms.deaf));
  made->sha1 = sha1_hex(made->text);
  made->script = {.name = script.name, .text = made->text, .sha1 = made->sha1};
  made_.push_back(std::move(made));
  return made_.back()->script;
}

}  // namespace sluice::simulation
