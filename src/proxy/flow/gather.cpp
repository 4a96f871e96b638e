// A request that is cut in fragments, one for each home (or one for every server).
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/side_request.hpp"

namespace sluice::proxy::flow {
namespace {

/// Waits for the replies of all fragments and gives the one that they make.
class Gather final : public SideRequest {
 public:
  Gather(Client& client, Words words, std::string_view bytes, const Plan& plan)
      : SideRequest(client, plan), keys_(plan.keys.begin(), plan.keys.end()), plan_(plan) {
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

  void begin() {
    cut();
    missing_ = fragments_.size() + 1;  // and one for this loop: a fragment may fail before its end
    keep(static_cast<std::ptrdiff_t>(text_.size() + bytes_.size()));
    for (std::uint32_t place = 0; place < fragments_.size(); ++place) send(place);
    arrived();
  }

  void replied(Request& request, std::string_view reply) override {
    fragments_[request.place].reply.assign(reply);
    keep(static_cast<std::ptrdiff_t>(reply.size()));
    drop(request);
    arrived();
  }

  void failed(Request& request, Failure failure) override {
    Fragment& fragment = fragments_[request.place];
    // Of the same server alone: if it is ejected by now, its keys may have several other homes.
    if (may_ask_again(request, failure, *fragment.home))
      return ask_again(request, *fragment.home, bytes_of(fragment));
    drop(request);
    fail(fragment, failure);
  }

 private:
  struct Fragment {
    Server* home;
    std::vector<std::uint32_t> keys;
    std::string reply;
    bool failed = false;
  };

  void cut() {
    if (plan_.route == Route::every) {
      for (const auto& server : pool_.servers())
        fragments_.push_back({server->health().well() ? server.get() : nullptr, {}, {}});
      if (fragments_.empty()) fragments_.push_back({nullptr, {}, {}});  // no map is known
      return;
    }
    std::vector<std::string_view> keys;
    for (const auto at : keys_) {
      pool_.note_key(words_[at]);
      keys.push_back(words_[at]);
    }
    for (auto& part : pool_.servers().parts_of(keys))
      fragments_.push_back({part.home, std::move(part.keys), {}});
    if (!pool_.is_strict())  // twemproxy has the counter, and never counts
      pool_.counters().fragments.add(static_cast<std::int64_t>(fragments_.size()));
  }

  std::string bytes_of(const Fragment& fragment) const {
    std::string bytes = bytes_;
    if (plan_.route != Route::every)
      pool_.protocol().append_fragment(bytes, words_, plan_, fragment.keys);
    return bytes;
  }

  void send(std::uint32_t place) {
    Fragment& fragment = fragments_[place];
    std::optional<std::string_view> key;
    if (!fragment.keys.empty()) key = words_[keys_[fragment.keys.front()]];
    if (!fragment.home) return fail(fragment, Failure::refused);
    ask(*fragment.home, bytes_of(fragment), place, fragments_.size(), key);
  }

  void fail(Fragment& fragment, Failure failure) {
    fragment.failed = true;
    pool_.protocol().append_failure(fragment.reply, failure);
    arrived();
  }

  void keep(std::ptrdiff_t bytes) {
    kept_ += bytes;
    if (whole_.receiver) whole_.receiver->kept_for(bytes);
  }

  void arrived() {
    if (--missing_ != 0) return;
    if (!whole_.receiver) return give("");
    std::vector<FragmentReply> replies;
    replies.reserve(fragments_.size());
    for (const auto& fragment : fragments_)
      replies.push_back({fragment.reply, fragment.keys, fragment.failed});
    std::string merged;
    pool_.protocol().append_merged(merged, words_, plan_, replies,
                                   pool_.settings().partial_replies);
    // twemproxy lacks the values that it merges, and closes the client behind the error.
    whole_.last = pool_.is_strict() && plan_.merge == Merge::by_key &&
                  std::ranges::any_of(fragments_, &Fragment::failed);
    keep(-kept_);
    give(merged);
  }

  std::string bytes_;  // of the whole request, where all servers get it as it is
  std::string text_;   // all words; words_ are views of it
  std::vector<std::string_view> words_;
  std::vector<std::size_t> keys_;
  Plan plan_;
  std::vector<Fragment> fragments_;
  std::size_t missing_ = 0;
  std::ptrdiff_t kept_ = 0;  // bytes that the receiver was told of
};

}  // namespace

void gather(Client& client, Words words, std::string_view bytes, const Plan& plan) {
  SideRequest::make<Gather>(client, words, bytes, plan).begin();
}

}  // namespace sluice::proxy::flow
