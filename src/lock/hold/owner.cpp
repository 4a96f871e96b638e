#include "lock/hold/owner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/callback.hpp"
#include "base/integer.hpp"
#include "base/keyed_hash.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "lock/text.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice {
namespace lock {

namespace {

/// A random prefix and a count of its own for each thread: no lock, and asks the kernel once. A
/// child draws anew, or it would say what its parent says.
template <std::string (*draw)(), char mark>
class Numbered {
 public:
  /// Until the next one.
  std::string_view next() {
    if (text_.empty() || forks_ != fork_count()) {
      text_ = draw() + mark;
      prefix_ = text_.size();
      forks_ = fork_count();
    }
    const fmt::format_int number{++last_};
    return text_.replace(prefix_, text_.npos, number.data(), number.size());
  }

 private:
  std::string text_;
  std::size_t prefix_ = 0;
  std::uint64_t last_ = 0;
  unsigned forks_ = 0;
};

std::string host_without_blanks() {
  auto name = host_name();
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// The ancestors that wait for this process, each after a '<', nearest first. Empty if the
/// environment names none, or something else than "PID:ACTOR<PID:ACTOR".
std::string ancestors() {
  constexpr std::size_t longest = 200;
  const char* const known = std::getenv(ancestors_variable);
  const std::string_view text = known ? known : "";
  const bool is_valid = !text.empty() && text.size() <= longest &&
                        text.find_first_not_of("0123456789:t<") == text.npos;
  return is_valid ? '<' + std::string{text} : std::string{};
}

/// "HOST PID t<thread> ", made once for each thread of each process; behind the thread its
/// ancestors, if it has any.
const std::string& this_thread() {
  struct Place {
    std::string text;
    unsigned forks = 0;
  };
  auto& [text, forks] = of_this_thread<Place>();
  if (text.empty() || forks != fork_count()) {
    forks = fork_count();
    text = host_without_blanks() + ' ' + std::to_string(::getpid()) + " t" +
           std::to_string(::gettid()) + ancestors() + ' ';
  }
  return text;
}

std::string_view next_owner_id() { return of_this_thread<Numbered<random_uuid, ':'>>().next(); }

std::string_view next_request_id() {
  return of_this_thread<Numbered<random_hex_128, '-'>>().next();
}

/// `text` as holder_text() has it.
void put_holder(bool is_owner, std::string_view label, std::string& text) {
  const std::string_view here = this_thread();
  if (is_owner) {
    const auto actor = here.rfind(" t") + 1;
    const auto end = std::min(here.find('<', actor), here.size() - 1);
    text.assign(here.substr(0, actor)).append("-").append(here.substr(end));
  } else {
    text.assign(here);
  }
  text.append(label);
}

}  // namespace

std::string new_owner_id() { return std::string{next_owner_id()}; }

std::string new_request_id() { return std::string{next_request_id()}; }

Identity new_identity(const OwnerState* owner, std::string_view label) {
  struct Holder {
    std::string text;
  };
  auto& [holder] = of_this_thread<Holder>();
  put_holder(owner != nullptr, label, holder);
  return {owner ? owner->id.text : next_owner_id(), next_request_id(), holder};
}

const std::shared_ptr<OwnerState>& this_thread_owner() {
  struct Mine {
    Owner owner;
    unsigned forks = fork_count();
  };
  auto& mine = of_this_thread<Mine>();
  if (mine.forks != fork_count()) mine = {};  // the name is the parent's
  return Internals::state(mine.owner);
}

std::shared_ptr<Hold> OwnerState::find(const Watchdog& watchdog, const std::string& key,
                                       const Script& renewal) {
  const std::lock_guard lock{mutex};
  const auto [first, last] = holds.equal_range(KeyedHash{}(key));
  for (auto at = first; at != last; ++at) {
    auto hold = at->second.lock();
    if (hold && &hold->watchdog() == &watchdog && hold->resource->key() == key &&
        &hold->resource->renewal() == &renewal && hold->state == HoldState::held &&
        hold->forks == fork_count())
      return hold;
  }
  return nullptr;
}

void OwnerState::add(const std::shared_ptr<Hold>& hold) {
  const auto is_over = [](const auto& entry) {
    const auto other = entry.second.lock();
    return !other || other->state != HoldState::held;
  };
  const std::lock_guard lock{mutex};
  const auto name = KeyedHash{}(hold->resource->key());
  auto [at, last] = holds.equal_range(name);
  while (at != last) at = is_over(*at) ? holds.erase(at) : std::next(at);
  holds.emplace(name, hold);
  if (holds.size() < full) return;
  std::erase_if(holds, is_over);
  full = 2 * holds.size() + 16;
}

std::string label_or_program(std::string label) {
  if (label.empty()) label = ::program_invocation_short_name;
  return label;
}

std::string holder_text(bool is_owner, std::string_view label) {
  std::string text;
  put_holder(is_owner, label, text);
  return text;
}

HolderData holder_data(std::string_view text) {
  std::string_view rest = text;
  const auto host = take_word(rest);
  const auto pid = take_word(rest);
  const auto actor = take_word(rest);
  HolderData data;
  const auto number = parse_integer<decltype(data.pid)>(pid);
  if (!number || actor.empty()) {
    data.label = text;
    return data;
  }
  data.pid = *number;
  const auto own = std::min(actor.find('<'), actor.size());
  data.host = host;
  data.actor = actor.substr(0, own);
  data.ancestors = actor.substr(std::min(own + 1, actor.size()));
  data.label = rest;
  return data;
}

}  // namespace lock

Owner::Owner() : state_(std::make_shared<lock::OwnerState>()) {
  state_->id.text = lock::new_owner_id();
}

const OwnerId& Owner::id() const noexcept { return state_->id; }

std::string ancestors_of_child() {
  constexpr std::size_t most = 8;
  const HolderData here = lock::holder_data(lock::holder_text(false, {}));
  std::string all = std::to_string(here.pid) + ':' + here.actor;
  std::string_view rest = here.ancestors;
  for (std::size_t more = 1; more < most && !rest.empty(); ++more) {
    const auto end = std::min(rest.find('<'), rest.size());
    all.append("<").append(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

}  // namespace sluice
