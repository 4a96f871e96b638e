#include "proxy/flow/session/script_cache.hpp"

#include <utility>
#include <vector>

#include "resp/request_parser.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

// A connection that knows so many forgets all: it may then load a script twice, which is harmless.
constexpr std::size_t most_loaded = 4096;

}  // namespace

bool ScriptCache::put(std::string_view sha, std::string_view body) {
  if (body.size() > limits_.bytes || limits_.count == 0) return false;
  const std::lock_guard lock{mutex_};
  if (by_sha_.contains(sha)) return true;
  while (scripts_.size() >= limits_.count || bytes_ + body.size() > limits_.bytes) forget_oldest();
  scripts_.push_front({std::string{sha}, std::make_shared<const std::string>(body)});
  by_sha_.emplace(scripts_.front().sha, scripts_.begin());
  bytes_ += body.size();
  return true;
}

ScriptCache::Body ScriptCache::find(std::string_view sha) {
  const std::lock_guard lock{mutex_};
  const auto found = by_sha_.find(sha);
  if (found == by_sha_.end()) return nullptr;
  scripts_.splice(scripts_.begin(), scripts_, found->second);
  return found->second->body;
}

std::string ScriptCache::written() {
  std::vector<std::pair<std::string, Body>> all;
  {
    const std::lock_guard lock{mutex_};
    for (auto one = scripts_.rbegin(); one != scripts_.rend(); ++one)
      all.emplace_back(one->sha, one->body);
  }
  std::string bytes;
  for (const auto& [sha, body] : all) resp::append_command(bytes, {sha, *body});
  return bytes;
}

void ScriptCache::read(std::string_view bytes) {
  resp::RequestParser parser;
  while (!bytes.empty() && parser.parse(bytes) == resp::RequestParser::State::complete) {
    if (const auto words = parser.words(); words.size() == 2) put(words[0], words[1]);
    bytes.remove_prefix(parser.size());
  }
}

void ScriptCache::clear() {
  const std::lock_guard lock{mutex_};
  by_sha_.clear();
  scripts_.clear();
  bytes_ = 0;
  clearings_.fetch_add(1, std::memory_order_acq_rel);
}

void ScriptCache::forget_oldest() {
  const auto& oldest = scripts_.back();
  bytes_ -= oldest.body->size();
  by_sha_.erase(oldest.sha);
  scripts_.pop_back();
}

bool LoadedScripts::has(std::string_view sha, Validity now) {
  forget_the_outdated(now);
  return loaded_.contains(sha);
}

void LoadedScripts::note(std::string_view sha, Validity now) {
  forget_the_outdated(now);
  if (loaded_.size() >= most_loaded) loaded_.clear();
  loaded_.emplace(sha);
}

void LoadedScripts::forget_the_outdated(Validity now) {
  if (validity_ == now) return;
  loaded_.clear();
  validity_ = now;
}

}  // namespace sluice::proxy::flow
