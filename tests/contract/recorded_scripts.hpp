/// The calls of scripts by programs, each with the keys that stood in its slot before.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_slot.hpp"
#include "support/cluster_rig.hpp"
#include "support/forwarding_store.hpp"

namespace sluice::test {

/// A key: what RESTORE takes.
struct Dumped {
  std::string dump;
  std::string ttl;  ///< ms; "0": for ever
};
using Keyspace = std::map<std::string, Dumped>;

struct RecordedScript {
  const Script* script;
  std::vector<std::string> keys;
  std::vector<std::string> args;
  Keyspace before;

  int slot() const { return hash_slot(keys.front()); }
};

/// Of each script some calls that differ in which keys were there, or in how much they had.
class ScriptLog {
 public:
  explicit ScriptLog(ClusterRig& rig) : rig_(rig) {}

  void note(const Script& script, std::vector<std::string> keys, std::vector<std::string> args) {
    const std::lock_guard lock{mutex_};
    if (keys.empty()) return;
    RecordedScript call{&script, std::move(keys), std::move(args), {}};
    call.before = keys_of(call.slot());
    std::map<std::string, std::size_t> there;
    for (const auto& [key, dumped] : call.before) there[key] = dumped.dump.size() / 16;
    auto& seen = seen_[std::string{script.name}];
    if (seen.size() >= most || !seen.insert({there, call.keys.size()}).second) return;
    calls_.push_back(std::move(call));
  }
  std::vector<RecordedScript> calls() const {
    const std::lock_guard lock{mutex_};
    return calls_;
  }
  std::set<std::string> names() const {
    const std::lock_guard lock{mutex_};
    std::set<std::string> all;
    for (const auto& [name, seen] : seen_) all.insert(name);
    return all;
  }

 private:
  static constexpr std::size_t most = 12;

  Keyspace keys_of(int slot) {
    auto master = rig_.client_of(rig_.master_of_slot(slot));
    Keyspace all;
    const auto names = master.command({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"});
    for (const auto& name : names.as_items()) {
      const auto dump = master.command({"DUMP", name.as_text()});
      const auto left = master.command({"PTTL", name.as_text()}).as_integer();
      if (dump.is_text())
        all[name.as_text()] = {dump.as_text(), std::to_string(std::max<std::int64_t>(left, 0))};
    }
    return all;
  }

  ClusterRig& rig_;
  mutable std::mutex mutex_;
  using Sizes = std::map<std::string, std::size_t>;
  std::map<std::string, std::set<std::pair<Sizes, std::size_t>>> seen_;
  std::vector<RecordedScript> calls_;
};

/// A Store that notes its scripts.
class RecordingStore final : public WatchedStore {
 public:
  RecordingStore(Store& store, ScriptLog& log) : WatchedStore(store), log_(log) {}

  using ForwardingStore::run;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    log_.note(script, {keys.begin(), keys.end()}, {args.begin(), args.end()});
    return ForwardingStore::run(script, keys, args, options);
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    for (const auto& item : batch.items()) {
      const auto begin = item.words.begin(),
                 args = begin + static_cast<std::ptrdiff_t>(item.key_count);
      if (item.script) log_.note(*item.script, {begin, args}, {args, item.words.end()});
    }
    return ForwardingStore::run(std::move(batch), options);
  }
  bool is_sharded() const noexcept override { return store_.is_sharded(); }

 private:
  ScriptLog& log_;
};

}  // namespace sluice::test
