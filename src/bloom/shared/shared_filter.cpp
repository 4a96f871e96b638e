#include "bloom/shared/shared_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "bloom/shared/shared.lua.hpp"
#include "sluice/metrics.hpp"
#include "store/key_name.hpp"
#include "store/reply_error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::size_t longest_name = 1 << 20;
/// Bits that one script asks for or sets: it holds up the server for some milliseconds.
constexpr std::size_t most_indexes = 10'000;
constexpr std::size_t most_scripts = 16;  // in one round trip
/// A bulk that asks for many keys of a small filter reads the bits instead: a script takes the
/// server 2 to 4 us for a key, in which it sends twice as many bytes.
constexpr std::uint64_t bytes_a_key = 2048;
constexpr std::size_t least_for_bits = 16;
constexpr std::uint64_t most_bits_bytes = 8 << 20;

/// A text with the 16 bytes of each key, as their subscribers want them.
void append(std::string& text, const KeyHash& key) {
  for (const std::uint64_t half : {key.first, key.second})
    for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(half >> shift);
}

/// Whether a filter of a shorter name may have a key that is called so.
bool is_key_of_another(std::string_view name) {
  if (name.find('{') == name.npos) return false;
  const auto digits = name.find_last_not_of("0123456789") + 1;
  const bool is_link = digits < name.size() && name.substr(0, digits).ends_with(":link:");
  return is_link || name.ends_with(":next") || name.ends_with(":config");
}

}  // namespace

std::string quoted(const std::string& name) { return to_string(Value::bulk_string(name)); }

std::string next_name(const std::string& name) { return key_with_suffix(name, "next"); }

Error changes_always(const FilterNames& names) {
  return Error{Errc::server,
               fmt::format("the definition of Bloom filter {} changes again and again: is it "
                           "created and removed in a loop?",
                           quoted(names.bits)),
               Effect::unknown};
}

std::string checked_name(std::string name) {
  if (name.empty())
    throw Error{Errc::bad_argument, "a Bloom filter needs a name that is not empty"};
  if (name.size() > longest_name)
    throw Error{Errc::bad_argument,
                fmt::format("the name of a Bloom filter has at most {} bytes, this one {}: {}",
                            longest_name, name.size(), quoted(name))};
  check_own_keys("Bloom filter", name);
  if (!has_whole_tag_or_none(name))
    throw Error{Errc::bad_argument,
                fmt::format("Bloom filter {}: braces in a name are a whole tag, as in "
                            "'{{shop}}:users', or its keys would lie in different slots of a "
                            "cluster",
                            quoted(name))};
  if (is_key_of_another(name))
    throw Error{Errc::bad_argument,
                fmt::format("Bloom filter {}: so a key of another filter is called, which has that "
                            "one's bits or config; choose a name that does not end in ':next', "
                            "':config' or ':link:1' behind braces",
                            quoted(name))};
  return name;
}

// A filter

SharedFilter::SharedFilter(Store& store, std::string name, SharedBloomOptions options)
    : store_(store), names_(checked_name(std::move(name))), options_(options) {}

SharedFilter::SharedFilter(const SharedFilter& filter, std::string id,
                           std::chrono::milliseconds lease, bool both)
    : store_(filter.store_),
      names_(next_name(filter.names_.bits)),
      options_{.codec = filter.options_.codec, .announce = false},
      id_(std::move(id)),
      lease_(lease),
      both_(both),
      rebuilt_(filter.names_.bits) {}

Task<Value> SharedFilter::ask_definition() {
  return store_.run({"HMGET", names_.config, "size", "hashIterations", "sluice:links", "sluice:id",
                     "sluice:next"});
}

Task<Definition> SharedFilter::read() {
  const auto self = shared_from_this();
  const Value reply = co_await ask_definition();
  Definition found = Definition::of(reply, names_.config);
  remember(found);
  co_return found;
}

void SharedFilter::remember(Definition definition) {
  const std::lock_guard lock{mutex_};
  if (known_ && known_->exists() && *known_ != definition) count(metrics().bloom_followed);
  known_ = std::move(definition);
}

Error SharedFilter::closed() const {
  if (!id_.empty())
    return Error{Errc::closed,
                 fmt::format("the rebuild of Bloom filter {} was given up: its lease is over, or "
                             "the filter was removed or has expired; begin another",
                             quoted(rebuilt_))};
  return Error{Errc::closed,
               fmt::format("there is no Bloom filter {} in {}: create it first, with try_create or "
                           "'sluice bloom create'; it may have expired",
                           quoted(names_.bits), store_.describe())};
}

Task<Definition> SharedFilter::definition() {
  const auto self = shared_from_this();
  Definition known;
  {
    const std::lock_guard lock{mutex_};
    if (known_) known = *known_;
  }
  if (!known.exists()) known = co_await read();
  if (!known.exists() || (!id_.empty() && known.id != id_)) throw closed();
  co_return known;
}

std::vector<std::string> terms_of(const SharedBloomSize& size) {
  return {fmt::to_string(size.expected), java_text(size.error_rate), "0"};
}

/// The fields of a new filter, as `define` of shared.lua wants them.
void add_fields(Call& call, const Definition& made, const std::vector<std::string>& terms) {
  call.arg(made.size).arg(made.hashes).arg(terms.at(0)).arg(terms.at(1)).arg(made.chain);
  call.arg(terms.at(2));
}

Task<bool> SharedFilter::create(SharedBloomSize size, bool same) {
  const auto self = shared_from_this();
  const Definition made = Definition::made(size);
  Call call{scripts::bloom_shared_create};
  call.key(names_.config).key(names_.bits).key(FilterNames{next_name(names_.bits)}.config);
  for (std::size_t i = 1; i < Definition::most_links; ++i) call.key(names_.link(i));
  add_fields(call, made, terms_of(size));
  call.arg(names_.channel);
  const Value reply = co_await call.run(store_, false);  // a late copy would undo its removal
  if (reply.as_integer() == 1 || !same) co_return reply.as_integer() == 1;
  const Definition found = co_await read();
  // A chain has grown since.
  const bool is_same = found.size == made.size && found.hashes == made.hashes &&
                       found.chain.starts_with(made.chain) && found.grows() == made.grows();
  if (is_same) co_return false;
  throw Error{Errc::config_mismatch,
              fmt::format("Bloom filter {} is defined in {} with {} bits, {} hashes{}, and here "
                          "with {} bits, {} hashes{}: order the same size and error rate, or "
                          "rebuild it",
                          quoted(names_.bits), store_.describe(), found.size, found.hashes,
                          found.grows() ? " and a chain" : "", made.size, made.hashes,
                          made.grows() ? " and a chain" : "")};
}

Task<bool> SharedFilter::ask(Verb verb, KeyHash key) {
  const auto self = shared_from_this();
  const std::vector<KeyHash> keys(1, key);
  const std::vector<bool> answers = co_await ask(verb, keys);
  co_return answers.at(0);
}

Call SharedFilter::call_for(Verb verb, const Definition& known, const std::vector<KeyHash>& keys,
                            std::span<const std::size_t> which) const {
  Call call{verb == Verb::add ? scripts::bloom_shared_add : scripts::bloom_shared_contains};
  call.key(names_.config);
  for (auto& link : names_.links(known.links.size())) call.key(std::move(link));
  call.known(known).arg(which.size());
  if (verb == Verb::add) {
    std::string news;
    if (options_.announce)
      for (const std::size_t i : which) append(news, keys[i]);
    call.arg(known.links.back().capacity).arg(names_.channel).arg(news);
    call.arg(static_cast<std::uint64_t>(lease_.count()));
  }
  for (const Link& link : known.links) call.arg(link.hashes);
  for (const Link& link : known.links)
    for (const std::size_t i : which)
      each_index(keys[i], link.modulus, link.hashes, [&call](std::uint64_t index) {
        call.arg(index);
        return true;
      });
  return call;
}

std::vector<Call> SharedFilter::calls_for(Verb verb, const Definition& known,
                                          const std::vector<KeyHash>& keys,
                                          std::span<const std::size_t> which,
                                          std::size_t a_script) const {
  std::vector<Call> calls;
  for (; !which.empty(); which = which.subspan(std::min(a_script, which.size())))
    calls.push_back(call_for(verb, known, keys, which.first(std::min(a_script, which.size()))));
  return calls;
}

Task<std::vector<Value>> SharedFilter::send(const std::vector<Call>& calls, Verb verb) {
  // An answer to a second add would say that the key is not new.
  const bool repeatable = verb == Verb::contains;
  std::vector<Value> replies;
  if (calls.size() == 1) {
    Value reply = co_await calls.front().run(store_, repeatable);
    replies.push_back(std::move(reply));
    co_return replies;
  }
  Batch batch;
  for (const Call& call : calls) call.add_to(batch);
  CallOptions options;
  options.repeatable = repeatable;
  replies = co_await store_.run(std::move(batch), options);
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i].check(replies.at(i));
  co_return replies;
}

namespace {

bool has(const Link& link, std::string_view bits, const KeyHash& key) {
  return each_index(key, link.modulus, link.hashes, [bits](std::uint64_t index) {
    return index / 8 < bits.size() &&
           (static_cast<unsigned char>(bits[index / 8]) & (0x80 >> index % 8)) != 0;
  });
}

bool is_worth_its_bits(const Definition& known, std::size_t keys) {
  std::uint64_t bytes = 0;
  for (const Link& link : known.links) bytes += link.bits / 8;
  return keys >= least_for_bits && bytes <= most_bits_bytes && bytes <= keys * bytes_a_key;
}

}  // namespace

/// Throws Error (corrupt): a link is missing. Elsewhere an absent key reads as one without bits.
Task<void> SharedFilter::need_links(Definition known) {
  const auto self = shared_from_this();
  const Call call = call_for(Verb::contains, known, {}, {});
  const Value reply = co_await call.run(store_, true);
  if (reply.is_aggregate()) remember(Definition::of(reply, names_.config));
}

/// The answers by the bits, read in one round trip. Empty: the definition was another before or
/// behind it.
Task<std::optional<std::vector<bool>>> SharedFilter::ask_bits(Definition known,
                                                              std::vector<KeyHash> keys) {
  const auto self = shared_from_this();
  Batch batch;
  const auto look = [this, &batch] {
    batch.add({"HMGET", names_.config, "size", "hashIterations", "sluice:links", "sluice:id",
               "sluice:next"});
  };
  look();
  const auto links = names_.links(known.links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string last = fmt::to_string((known.links[i].bits + 7) / 8 - 1);
    batch.add({"GETRANGE", links[i], "0", last});
  }
  look();
  const std::vector<Value> replies = co_await store_.run(std::move(batch));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_error()) continue;
    const bool is_link = i > 0 && i <= links.size();
    const std::string_view command[] = {is_link ? "GETRANGE" : "HMGET",
                                        is_link ? links[i - 1] : names_.config};
    throw error_of_command(replies[i].as_text(), Words{command});
  }
  Definition now = Definition::of(replies.front(), names_.config);
  const bool is_same = now == known && Definition::of(replies.back(), names_.config) == known;
  remember(std::move(now));
  std::optional<std::vector<bool>> answers;
  if (!is_same) co_return answers;
  for (std::size_t i = 1; i <= links.size(); ++i)
    if (replies[i].as_text().empty()) co_await need_links(known);
  answers.emplace();
  answers->reserve(keys.size());
  for (const KeyHash& key : keys) {
    bool there = false;
    for (std::size_t i = links.size(); i > 0 && !there; --i)
      there = has(known.links[i - 1], replies[i].as_text(), key);
    answers->push_back(there);
  }
  co_return answers;
}

Task<std::vector<bool>> SharedFilter::ask(Verb verb, std::vector<KeyHash> keys) {
  const auto self = shared_from_this();
  std::vector<bool> answers(keys.size());
  std::vector<bool> answered(keys.size());
  std::vector<std::size_t> todo(keys.size());
  std::iota(todo.begin(), todo.end(), std::size_t{0});
  for (int in_vain = 0; !todo.empty();) {
    const Definition known = co_await definition();
    if (verb == Verb::contains && is_worth_its_bits(known, todo.size()) &&
        todo.size() == keys.size()) {
      auto asked = ask_bits(known, keys);
      std::optional<std::vector<bool>> by_bits = co_await asked;
      if (by_bits) co_return std::move(*by_bits);
      if (++in_vain == most_changes) throw changes_always(names_);
      continue;
    }
    const std::size_t a_script = std::max<std::size_t>(1, most_indexes / known.hashes_of_all());
    const std::size_t now = std::min(todo.size(), a_script * most_scripts);
    const auto calls = calls_for(verb, known, keys, std::span{todo}.first(now), a_script);
    const std::vector<Value> replies = co_await send(calls, verb);

    std::vector<std::size_t> left;
    std::vector<std::size_t> done;
    bool is_full = false;
    for (std::size_t call = 0; call < calls.size(); ++call) {
      const auto which =
          std::span{todo}.subspan(call * a_script, std::min(a_script, now - call * a_script));
      const Value& reply = replies.at(call);
      std::string_view text;
      if (reply.is_aggregate())
        remember(Definition::of(reply, names_.config));
      else
        text = reply.as_text();
      is_full |= !reply.is_aggregate() && text.size() < which.size();
      for (std::size_t i = 0; i < which.size(); ++i) {
        if (i >= text.size()) {
          left.push_back(which[i]);
        } else {
          // What was new at the first time is new, also where a rebuild needs a second.
          if (!answered[which[i]]) answers[which[i]] = text[i] == '1';
          answered[which[i]] = true;
          done.push_back(which[i]);
        }
      }
    }
    if (is_full) co_await grow(known);
    if (verb == Verb::add && !known.next.empty() && !done.empty()) {
      std::vector<KeyHash> added;
      added.reserve(done.size());
      for (const std::size_t i : done) added.push_back(keys[i]);
      const bool is_in_next = co_await add_to_next(known.next, std::move(added));
      if (!is_in_next) left.insert(left.end(), done.begin(), done.end());
    }
    in_vain = left.size() < now || is_full ? 0 : in_vain + 1;
    if (in_vain == most_changes) throw changes_always(names_);
    left.insert(left.end(), todo.begin() + static_cast<std::ptrdiff_t>(now), todo.end());
    todo = std::move(left);
  }
  co_return answers;
}

Task<void> SharedFilter::grow(Definition known) {
  const auto self = shared_from_this();
  Call call{scripts::bloom_shared_grow};
  call.key(names_.config).key(names_.link(known.links.size()));
  call.known(known).arg(known.longer_chain());
  const Value reply = co_await call.run(store_, true);
  remember(Definition::of(reply, names_.config));
}

std::shared_ptr<SharedFilter> SharedFilter::next_of(const std::string& id) {
  const std::lock_guard lock{mutex_};
  if (!next_ || next_->id_ != id)
    next_ = std::make_shared<SharedFilter>(*this, id, std::chrono::milliseconds{0}, true);
  return next_;
}

/// False: the rebuild is over, and the filter may be the one that it made.
Task<bool> SharedFilter::add_to_next(std::string id, std::vector<KeyHash> keys) {
  const auto self = shared_from_this();
  const auto next = next_of(id);
  bool is_lost = false;  // a server that is full evicts what has a time to live, as a rebuild has
  try {
    co_await next->ask(Verb::add, std::move(keys));
    co_return true;
  } catch (const Error& failure) {
    is_lost = failure.errc() == Errc::corrupt;
    if (!is_lost && failure.errc() != Errc::closed) throw;
  }
  if (is_lost) {
    co_await next->give_up(self);
  } else {
    Call call{scripts::bloom_shared_give_up};
    call.key(names_.config).key(next->names_.config).arg(id).arg("1");
    co_await call.run(store_, true);
  }
  co_await read();
  co_return false;
}

}  // namespace sluice::bloom
