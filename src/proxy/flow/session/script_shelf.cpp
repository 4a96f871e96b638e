#include "proxy/flow/session/script_shelf.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t most_given =
    4096;  // beyond them a connection begins anew: a script may be given twice

}  // namespace

bool ScriptShelf::put(std::string_view sha, std::string_view body) {
  if (body.size() > limits_.bytes || limits_.count == 0) return false;
  const std::lock_guard lock{mutex_};
  if (by_sha_.contains(sha)) return true;
  while (scripts_.size() >= limits_.count || bytes_ + body.size() > limits_.bytes) forget_oldest();
  scripts_.push_front({std::string{sha}, std::make_shared<const std::string>(body)});
  by_sha_.emplace(scripts_.front().sha, scripts_.begin());
  bytes_ += body.size();
  return true;
}

ScriptShelf::Body ScriptShelf::find(std::string_view sha) {
  const std::lock_guard lock{mutex_};
  const auto found = by_sha_.find(sha);
  if (found == by_sha_.end()) return nullptr;
  scripts_.splice(scripts_.begin(), scripts_, found->second);
  return found->second->body;
}

void ScriptShelf::clear() {
  const std::lock_guard lock{mutex_};
  by_sha_.clear();
  scripts_.clear();
  bytes_ = 0;
  clearings_.fetch_add(1, std::memory_order_acq_rel);
}

void ScriptShelf::forget_oldest() {
  const auto& oldest = scripts_.back();
  bytes_ -= oldest.body->size();
  by_sha_.erase(oldest.sha);
  scripts_.pop_back();
}

bool GivenScripts::has(std::string_view sha, Validity now) {
  forget_the_outdated(now);
  return given_.contains(sha);
}

void GivenScripts::note(std::string_view sha, Validity now) {
  forget_the_outdated(now);
  if (given_.size() >= most_given) given_.clear();
  given_.emplace(sha);
}

void GivenScripts::forget_the_outdated(Validity now) {
  if (validity_ == now) return;
  given_.clear();
  validity_ = now;
}

}  // namespace sluice::proxy
