#include "proxy/flow/gather.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"

namespace sluice::proxy::flow {

bool Gather::begin(Pool& pool, Request& whole, Words words, std::string_view bytes,
                   const Plan& plan, const ConnectionMode& mode, std::size_t client) {
  std::unique_ptr<Gather> made{new Gather{pool, whole, words, bytes, plan, mode, client}};
  Gather& gather = *made;
  gather.self_ = std::move(made);
  gather.cut();
  // And one for this function: a fragment may fail before the last is sent.
  gather.missing_ = gather.fragments_.size() + 1;
  gather.keep(static_cast<std::ptrdiff_t>(gather.text_.size() + gather.bytes_.size()));
  bool full = false;
  for (std::size_t place = 0; place < gather.fragments_.size(); ++place)
    full = gather.send(place) || full;
  gather.done();
  return full;
}

Gather::Gather(Pool& pool, Request& whole, Words words, std::string_view bytes, const Plan& plan,
               const ConnectionMode& mode, std::size_t client)
    : pool_(pool),
      whole_(whole),
      keys_(plan.keys.begin(), plan.keys.end()),
      plan_(plan),
      mode_(mode),
      client_(client) {
  if (plan.route == Route::every) bytes_ = bytes;
  std::size_t size = 0;
  for (const auto word : words) size += word.size();
  text_.reserve(size);  // the views below stay good
  words_.reserve(words.size());
  for (const auto word : words) {
    const auto at = text_.size();
    text_.append(word);
    words_.push_back(std::string_view{text_}.substr(at));
  }
  plan_.keys = keys_;
}

void Gather::cut() {
  if (plan_.route == Route::every) {
    for (const auto& server : pool_.servers())
      fragments_.push_back({server->health().well() ? server.get() : nullptr, {}, {}});
    return;
  }
  for (std::uint32_t key = 0; key < keys_.size(); ++key) {
    pool_.note_key(words_[keys_[key]]);
    Server* home = pool_.servers().home_of(words_[keys_[key]]);
    auto fragment = std::ranges::find(fragments_, home, &Fragment::home);
    if (fragment == fragments_.end())
      fragment = fragments_.insert(fragments_.end(), Fragment{home, {}, {}});
    fragment->keys.push_back(key);
  }
  pool_.counters().fragments.add(static_cast<std::int64_t>(fragments_.size()));
}

void Gather::keep(std::ptrdiff_t bytes) {
  kept_ += bytes;
  if (whole_.receiver) whole_.receiver->kept_for(bytes);
}

/// True: the server has more than enough to take.
bool Gather::send(std::size_t place) {
  Request& request = pool_.loop().requests().make();
  request.receiver = this;
  request.place = static_cast<std::uint32_t>(place);
  request.command = plan_.command;
  request.read_only = plan_.read_only;
  request.expected = whole_.expected / static_cast<std::uint32_t>(fragments_.size());
  if (fragments_[place].home) return ask(request);
  failed(request, Failure::refused);
  return false;
}

bool Gather::ask(Request& request) {
  const Fragment& fragment = fragments_[request.place];
  std::string bytes;
  if (plan_.route == Route::every)
    bytes = bytes_;
  else
    pool_.protocol().append_fragment(bytes, words_, plan_, fragment.keys);
  Upstream& upstream = fragment.home->upstream(mode_, client_);
  upstream.send(request, bytes);
  return upstream.is_full();
}

/// Asks the same server alone: if it is ejected by now, its keys may have several other homes.
bool Gather::ask_again(Request& request, Failure failure) {
  if (!pool_.settings().retry_reads || !may_ask_again(request, whole_, failure)) return false;
  const Server* const home = fragments_[request.place].home;
  if (!pool_.servers().contains(home) || !home->health().well()) return false;
  request.retried = true;
  pool_.counters().retries.add();
  ask(request);
  return true;
}

void Gather::replied(Request& request, std::string_view reply) {
  fragments_[request.place].reply.assign(reply);
  keep(static_cast<std::ptrdiff_t>(reply.size()));
  pool_.loop().requests().drop(request);
  done();
}

void Gather::failed(Request& request, Failure failure) {
  if (ask_again(request, failure)) return;
  Fragment& fragment = fragments_[request.place];
  fragment.failed = true;
  pool_.protocol().append_failure(fragment.reply, failure);
  pool_.loop().requests().drop(request);
  done();
}

void Gather::done() {
  if (--missing_ == 0) finish();
}

void Gather::finish() {
  const auto end = std::move(self_);  // destroys this at the end
  if (!whole_.receiver) return pool_.loop().requests().drop(whole_);
  std::vector<FragmentReply> replies;
  replies.reserve(fragments_.size());
  for (const auto& fragment : fragments_)
    replies.push_back({fragment.reply, fragment.keys, fragment.failed});
  std::string merged;
  pool_.protocol().append_merged(merged, words_, plan_, replies, pool_.settings().partial_replies);
  // twemproxy lacks the values that it merges, and closes the client behind the error.
  whole_.last = pool_.is_strict() && plan_.merge == Merge::by_key &&
                std::ranges::any_of(fragments_, &Fragment::failed);
  keep(-kept_);
  whole_.receiver->replied(whole_, merged);
}

}  // namespace sluice::proxy::flow
