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
/// How often a definition may change under one question that gets no answer meanwhile.
constexpr int most_changes = 10;
constexpr std::uint64_t piece_bytes = 1 << 20;
constexpr std::size_t pieces_together = 4;

std::string quoted(const std::string& name) { return to_string(Value::bulk_string(name)); }

Words words(const std::vector<std::string_view>& views) { return {views.data(), views.size()}; }

std::string next_name(const std::string& name) { return key_with_suffix(name, "next"); }

/// A text with the 16 bytes of each key, as their subscribers want them.
void append(std::string& text, const KeyHash& key) {
  for (const std::uint64_t half : {key.first, key.second})
    for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(half >> shift);
}

/// The whole numbers that `set` bits speak for.
std::uint64_t keys_of(double bits, double hashes, double set) {
  const double part = std::min(set, bits - 1) / bits;
  return static_cast<std::uint64_t>(std::llround(-bits / hashes * std::log1p(-part)));
}

Error changes_always(const FilterNames& names) {
  return Error{Errc::server,
               fmt::format("the definition of Bloom filter {} changes again and again: is it "
                           "created and removed in a loop?",
                           quoted(names.bits)),
               Effect::unknown};
}

}  // namespace

std::string checked_name(std::string name) {
  if (name.empty()) throw Error{Errc::bad_argument, "a Bloom filter needs a name that is not empty"};
  if (name.size() > longest_name)
    throw Error{Errc::bad_argument,
                fmt::format("the name of a Bloom filter has at most {} bytes, this one {}: {}",
                            longest_name, name.size(), quoted(name))};
  const auto opens = name.find('{');
  const auto closes = name.find('}', opens == name.npos ? 0 : opens + 1);
  const bool is_whole =
      opens == name.npos ? closes == name.npos : closes != name.npos && closes > opens + 1;
  if (!is_whole)
    throw Error{Errc::bad_argument,
                fmt::format("Bloom filter {}: braces in a name are a whole tag, as in "
                            "'{{shop}}:users', or its keys would lie in different slots of a "
                            "cluster",
                            quoted(name))};
  return name;
}

// A call

Call& Call::key(std::string name) {
  keys_.push_back(std::move(name));
  return *this;
}

Call& Call::arg(std::string_view text) {
  text_ += text;
  ends_.push_back(text_.size());
  return *this;
}

Call& Call::arg(std::uint64_t number) {
  const fmt::format_int text{number};
  return arg(std::string_view{text.data(), text.size()});
}

Call& Call::known(const Definition& definition) {
  return arg(definition.size)
      .arg(definition.hashes)
      .arg(definition.chain)
      .arg(definition.id)
      .arg(definition.next);
}

std::vector<std::string_view> Call::keys() const { return {keys_.begin(), keys_.end()}; }

std::vector<std::string_view> Call::args() const {
  std::vector<std::string_view> views;
  views.reserve(ends_.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    views.push_back(std::string_view{text_}.substr(begin, end - begin));
    begin = end;
  }
  return views;
}

Task<Value> Call::run(Store& store, bool repeatable) const {
  const auto all_keys = keys();
  const auto all_args = args();
  CallOptions options;
  options.repeatable = repeatable;
  return store.run(script_, words(all_keys), words(all_args), options);
}

void Call::add_to(Batch& batch) const {
  const auto all_keys = keys();
  const auto all_args = args();
  batch.add(script_, words(all_keys), words(all_args));
}

void Call::check(const Value& answer) const {
  if (!answer.is_error()) return;
  const auto all_keys = keys();
  throw error_of_script(answer.as_text(), script_, words(all_keys));
}

// A filter

SharedFilter::SharedFilter(Store& store, std::string name, SharedBloomOptions options)
    : store_(store), names_(checked_name(std::move(name))), options_(options) {}

SharedFilter::SharedFilter(const SharedFilter& filter, std::string id,
                           std::chrono::milliseconds lease)
    : store_(filter.store_),
      names_(next_name(filter.names_.bits)),
      options_{.codec = filter.options_.codec, .announce = false},
      id_(std::move(id)),
      lease_(lease) {}

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
                             "the filter was removed; begin another",
                             quoted(names_.bits))};
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

Task<Value> SharedFilter::manage(std::function<Call(const Definition&)> make) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition known = co_await read();
    if (!known.exists()) co_return Value{};
    const Call call = make(known);
    const Value reply = co_await call.run(store_, true);
    if (!reply.is_aggregate()) co_return reply;
  }
  throw changes_always(names_);
}

std::vector<std::string> terms_of(const SharedBloomSize& size) {
  return {fmt::to_string(size.expected), java_text(size.error_rate)};
}

namespace {

/// The fields of a new filter, as `define` of shared.lua wants them.
void add_fields(Call& call, const Definition& made, const std::vector<std::string>& terms) {
  call.arg(made.size).arg(made.hashes).arg(terms.at(0)).arg(terms.at(1)).arg(made.chain);
}

}  // namespace

Task<bool> SharedFilter::create(SharedBloomSize size, bool same) {
  const auto self = shared_from_this();
  const Definition made = Definition::made(size);
  Call call{scripts::bloom_shared_create};
  call.key(names_.config).key(names_.bits);
  add_fields(call, made, terms_of(size));
  call.arg(names_.channel);
  const Value reply = co_await call.run(store_, same);
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

Task<std::vector<bool>> SharedFilter::ask(Verb verb, std::vector<KeyHash> keys) {
  const auto self = shared_from_this();
  std::vector<bool> answers(keys.size());
  std::vector<bool> answered(keys.size());
  std::vector<std::size_t> todo(keys.size());
  std::iota(todo.begin(), todo.end(), std::size_t{0});
  for (int in_vain = 0; !todo.empty();) {
    const Definition known = co_await definition();
    const std::size_t a_script = std::max<std::size_t>(1, most_indexes / known.hashes_of_all());
    const std::size_t now = std::min(todo.size(), a_script * most_scripts);
    std::vector<Call> calls;
    for (std::size_t at = 0; at < now; at += a_script)
      calls.push_back(call_for(
          verb, known, keys, std::span{todo}.subspan(at, std::min(a_script, now - at))));
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
    next_ = std::make_shared<SharedFilter>(*this, id, std::chrono::milliseconds{0});
  return next_;
}

/// False: the rebuild is over, and the filter may be the one that it made.
Task<bool> SharedFilter::add_to_next(std::string id, std::vector<KeyHash> keys) {
  const auto self = shared_from_this();
  const auto next = next_of(id);
  try {
    co_await next->ask(Verb::add, std::move(keys));
    co_return true;
  } catch (const Error& failure) {
    if (failure.errc() != Errc::closed) throw;
  }
  Call call{scripts::bloom_shared_give_up};
  call.key(names_.config).key(next->names_.config).arg(id).arg("1");
  co_await call.run(store_, true);
  co_await read();
  co_return false;
}

Task<SharedBloomInfo> SharedFilter::info() {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition known = co_await read();
    if (!known.exists()) throw closed();
    Batch batch;
    batch.add({"HMGET", names_.config, "size", "hashIterations", "sluice:links", "sluice:id",
               "sluice:next", "expectedInsertions", "falseProbability"});
    batch.add({"PTTL", names_.config});
    const std::string next_config = FilterNames{next_name(names_.bits)}.config;
    batch.add({"EXISTS", next_config});
    for (const auto& link : names_.links(known.links.size())) {
      batch.add({"BITCOUNT", link});
      batch.add({"STRLEN", link});
    }
    const std::vector<Batch::Item> items = batch.items();
    const std::vector<Value> replies = co_await store_.run(std::move(batch));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (!replies[i].is_error()) continue;
      const std::vector<std::string_view> command{items[i].words.begin(), items[i].words.end()};
      throw error_of_command(replies[i].as_text(), words(command));
    }
    const auto& fields = replies.at(0).as_items();
    if (Definition::of(replies[0], names_.config) != known) continue;

    SharedBloomInfo info;
    const auto number_of = [](const Value& field) { return field.is_null() ? "" : field.as_text(); };
    info.expected = leading_number<std::uint64_t>(number_of(fields.at(5)));
    info.error_rate = parse_decimal(number_of(fields.at(6))).value_or(0);
    const std::int64_t left = replies.at(1).as_integer();
    if (left >= 0) info.left = std::chrono::milliseconds{left};
    info.rebuilding = !known.next.empty() && replies.at(2).as_integer() == 1;
    info.scalable = known.grows();
    double right = 1;  // that no link is wrong
    for (std::size_t i = 0; i < known.links.size(); ++i) {
      SharedBloomInfo::Link link;
      link.bits = known.links[i].bits;
      link.hashes = known.links[i].hashes;
      link.capacity = known.grows() ? known.links[i].capacity : info.expected;
      link.bits_set = static_cast<std::uint64_t>(replies.at(3 + 2 * i).as_integer());
      link.bytes = static_cast<std::uint64_t>(replies.at(4 + 2 * i).as_integer());
      const auto bits = static_cast<double>(link.bits);
      const auto set = static_cast<double>(link.bits_set);
      info.keys += keys_of(bits, link.hashes, set);
      right *= 1 - std::pow(std::min(set / bits, 1.0), link.hashes);
      info.links.push_back(link);
    }
    info.error_rate_now = 1 - right;
    co_return info;
  }
  throw changes_always(names_);
}

Task<void> SharedFilter::merge(std::vector<std::string> others) {
  const auto self = shared_from_this();
  for (const std::string& name : others) {
    if (name == names_.bits) continue;
    const auto other = std::make_shared<SharedFilter>(store_, name, options_);
    Definition theirs;
    const auto call_for_merge = [this, &theirs, &other](const Definition& mine) {
      const bool is_alike = theirs.links.size() <= mine.links.size() &&
                            theirs.grows() == mine.grows() &&
                            std::ranges::equal(theirs.links, std::span{mine.links}.first(
                                                                 theirs.links.size()));
      if (!is_alike)
        throw Error{Errc::config_mismatch,
                    fmt::format("Bloom filter {} ({} bits, {} hashes, links {}) and {} ({} bits, "
                                "{} hashes, links {}) cannot be merged: only filters of the same "
                                "size and hashes can, and a chain takes none that is longer",
                                quoted(names_.bits), mine.size, mine.hashes, mine.links.size(),
                                quoted(other->names_.bits), theirs.size, theirs.hashes,
                                theirs.links.size())};
      Call call{scripts::bloom_shared_merge};
      call.key(names_.config).key(other->names_.config);
      call.key(FilterNames{next_name(names_.bits)}.config);
      for (std::size_t i = 0; i < theirs.links.size(); ++i)
        call.key(names_.link(i)).key(other->names_.link(i));
      const bool counts = mine.grows() && theirs.links.size() == mine.links.size();
      call.known(mine).arg(theirs.size).arg(theirs.hashes).arg(theirs.chain);
      call.arg(counts ? "1" : "0").arg(names_.channel);
      return call;
    };
    for (int change = 0;; ++change) {
      if (change == most_changes) throw changes_always(other->names_);
      theirs = co_await other->read();
      if (!theirs.exists()) throw other->closed();
      const Value reply = co_await manage(call_for_merge);
      if (reply.is_null()) throw closed();
      if (reply.as_integer() == 1) break;
      if (reply.as_integer() == 0)
        throw Error{Errc::in_use, fmt::format("Bloom filter {} is rebuilt now: merge when that has "
                                              "ended, or add the keys to both",
                                              quoted(names_.bits))};
    }
  }
}

Task<bool> SharedFilter::remove() {
  const auto self = shared_from_this();
  const FilterNames next{next_name(names_.bits)};
  const Value reply = co_await manage([this, &next](const Definition& known) {
    Call call{scripts::bloom_shared_remove};
    call.key(names_.config).key(next.config).key(next.bits);
    for (auto& link : names_.links(known.links.size())) call.key(std::move(link));
    call.known(known).arg(names_.channel);
    return call;
  });
  remember({});
  co_return !reply.is_null();
}

Task<bool> SharedFilter::set_ttl(std::chrono::milliseconds ttl) {
  const auto self = shared_from_this();
  const Value reply = co_await manage([this, ttl](const Definition& known) {
    Call call{scripts::bloom_shared_expire};
    call.key(names_.config);
    for (auto& link : names_.links(known.links.size())) call.key(std::move(link));
    call.known(known).arg(static_cast<std::uint64_t>(ttl.count()));
    return call;
  });
  co_return !reply.is_null();
}

Task<bool> SharedFilter::rename(std::string to) {
  const auto self = shared_from_this();
  const FilterNames other{checked_name(std::move(to))};
  if (other.bits == names_.bits)
    throw Error{Errc::bad_argument, fmt::format("Bloom filter {} has that name already",
                                                quoted(names_.bits))};
  const Value reply = co_await manage([this, &other](const Definition& known) {
    Call call{scripts::bloom_shared_rename};
    call.key(names_.config).key(other.config);
    for (std::size_t i = 0; i < known.links.size(); ++i) call.key(names_.link(i)).key(other.link(i));
    call.known(known).arg(names_.channel).arg(other.channel);
    return call;
  });
  remember({});
  if (!reply.is_null() && reply.as_integer() == 0)
    throw Error{Errc::in_use, fmt::format("Bloom filter {} cannot be called {}: there is something "
                                          "of that name; remove it first",
                                          quoted(names_.bits), quoted(other.bits))};
  co_return !reply.is_null();
}

// Rebuilds

Task<std::shared_ptr<SharedFilter>> SharedFilter::begin(Definition made,
                                                        std::vector<std::string> terms,
                                                        std::chrono::milliseconds lease,
                                                        bool both) {
  const auto self = shared_from_this();
  const auto next = std::make_shared<SharedFilter>(*this, random_hex_128(), lease);
  Call call{scripts::bloom_shared_begin};
  call.key(names_.config).key(next->names_.config).key(next->names_.bits);
  add_fields(call, made, terms);
  call.arg(next->id_).arg(static_cast<std::uint64_t>(lease.count())).arg(both ? "1" : "0");
  const Value reply = co_await call.run(store_, false);
  co_return reply.as_integer() == 1 ? next : nullptr;
}

Task<void> SharedFilter::finish(std::shared_ptr<SharedFilter> filter) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition mine = co_await read();
    const Definition old = co_await filter->read();
    if (old.id == id_) co_return;  // an earlier call, whose reply was lost
    if (mine.id != id_) throw closed();
    const auto places = filter->names_.links(std::max(mine.links.size(), old.links.size()));
    Call call{scripts::bloom_shared_finish};
    call.key(filter->names_.config).key(names_.config);
    for (const auto& place : places) call.key(place);
    for (auto& link : names_.links(mine.links.size())) call.key(std::move(link));
    call.known(old).arg(id_).arg(mine.chain).arg(places.size()).arg(filter->names_.channel);
    const Value reply = co_await call.run(store_, true);
    if (reply.is_aggregate()) continue;
    // 0: given up; or a chain that grew, or an earlier copy of this call: look again.
    if (reply.as_integer() == 1) co_return;
  }
  throw closed();
}

Task<void> SharedFilter::give_up(std::shared_ptr<SharedFilter> filter) {
  const auto self = shared_from_this();
  const Definition mine = co_await read();
  Call call{scripts::bloom_shared_give_up};
  call.key(filter->names_.config).key(names_.config);
  for (auto& link : names_.links(std::max<std::size_t>(mine.links.size(), 1)))
    call.key(std::move(link));
  call.arg(id_).arg("0");
  co_await call.run(store_, true);
}

Task<void> SharedFilter::fill(std::size_t link, std::uint64_t offset, std::string bytes) {
  const auto self = shared_from_this();
  const Definition known = co_await definition();
  Call call{scripts::bloom_shared_fill};
  call.key(names_.config).key(names_.link(link));
  call.known(known).arg(offset).arg(bytes).arg(static_cast<std::uint64_t>(lease_.count()));
  const Value reply = co_await call.run(store_, true);
  if (reply.is_aggregate()) throw closed();
}

Task<Definition> SharedFilter::download(std::function<Sink(const Definition&)> begin) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition before = co_await read();
    if (!before.exists()) throw closed();
    const Sink sink = begin(before);
    for (std::size_t link = 0; link < before.links.size(); ++link) {
      const std::string name = names_.link(link);
      const std::uint64_t bytes = (before.links[link].bits + 7) / 8;
      bool is_at_end = false;
      for (std::uint64_t offset = 0; offset < bytes && !is_at_end;) {
        Batch batch;
        for (std::size_t i = 0; i < pieces_together && offset + i * piece_bytes < bytes; ++i) {
          const std::uint64_t first = offset + i * piece_bytes;
          const std::string from = fmt::to_string(first);
          const std::string to = fmt::to_string(std::min(first + piece_bytes, bytes) - 1);
          batch.add({"GETRANGE", name, from, to});
        }
        const std::vector<Value> pieces = co_await store_.run(std::move(batch));
        for (const Value& piece : pieces) {
          if (piece.is_error()) {
            const std::string_view command[] = {"GETRANGE", name};
            throw error_of_command(piece.as_text(), Words{command});
          }
          const std::string& text = piece.as_text();
          if (!text.empty()) sink(link, offset, text);
          offset += piece_bytes;
          is_at_end |= text.size() < piece_bytes;
        }
      }
    }
    const Definition after = co_await read();
    if (after == before) co_return after;
  }
  throw changes_always(names_);
}

}  // namespace sluice::bloom
