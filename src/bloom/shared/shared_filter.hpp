/// A filter in the Store, asked by scripts. Each script is told the definition that the caller
/// knows, and answers with the one that is in force if that is another; then it has done nothing,
/// and is called again with it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bloom/shared/call.hpp"

namespace sluice::bloom {

/// `name`, or Error (bad_argument) for one that no filter may have.
std::string checked_name(std::string name);
/// The name of what a rebuild of the filter fills.
std::string next_name(const std::string& name);
/// A name for messages.
std::string quoted(const std::string& name);

/// How often a definition may change under one question that gets no answer meanwhile.
inline constexpr int most_changes = 10;
Error changes_always(const FilterNames& names);

/// What stands in a config hash besides size and hashes: expectedInsertions,
/// falseProbability, sluice:count.
std::vector<std::string> terms_of(const SharedBloomSize& size);
/// The fields of a new filter, as `define` of shared.lua wants them.
void add_fields(Call& call, const Definition& made, const std::vector<std::string>& terms);

class SharedFilter : public std::enable_shared_from_this<SharedFilter> {
 public:
  enum class Verb { contains, add };

  SharedFilter(Store& store, std::string name, SharedBloomOptions options);
  /// What a rebuild fills; it is closed when that is over. `both`: programs add to both filters.
  SharedFilter(const SharedFilter& filter, std::string id, std::chrono::milliseconds lease,
               bool both);

  Store& store() noexcept { return store_; }
  const FilterNames& names() const noexcept { return names_; }
  BloomCodec codec() const noexcept { return options_.codec; }
  std::chrono::milliseconds lease() const noexcept { return lease_; }

  /// REQUIRES of all that return a Task: it is owned by a shared_ptr.

  Task<bool> create(SharedBloomSize size, bool same);
  Task<bool> ask(Verb verb, KeyHash key);
  Task<std::vector<bool>> ask(Verb verb, std::vector<KeyHash> keys);
  Task<SharedBloomInfo> info();
  Task<void> merge(std::vector<std::string> others);
  Task<bool> remove();
  Task<bool> set_ttl(std::chrono::milliseconds ttl);  // 0: never
  Task<bool> rename(std::string to);

  /// As the Store has it now. Of a filter that is not there it has no links.
  Task<Definition> read();
  /// As it is known here, else as the Store has it. Throws Error (closed): there is no filter.
  Task<Definition> definition();

  /// Begins a rebuild. Null: another is under way.
  Task<std::shared_ptr<SharedFilter>> begin(Definition made, std::vector<std::string> terms,
                                            std::chrono::milliseconds lease, bool both);
  /// Ends the rebuild that this one is.
  Task<void> finish(std::shared_ptr<SharedFilter> filter);
  Task<void> give_up(std::shared_ptr<SharedFilter> filter);
  /// Writes bytes of a link of a rebuild.
  Task<void> fill(std::size_t link, std::uint64_t offset, std::string bytes);

  using Sink = std::function<void(std::size_t link, std::uint64_t offset, std::string_view bytes)>;
  /// Reads all bits, of one definition: if it changes meanwhile, from the beginning. `begin` is
  /// called at each beginning; pieces come in order, and end where the Store has no more bytes.
  Task<Definition> download(std::function<Sink(const Definition&)> begin);

  BloomRebuild rebuild_of(std::shared_ptr<SharedFilter> next);
  static LocalBloomFilter local(std::shared_ptr<LocalFilter> copy);

 private:
  Task<Value> ask_definition();
  void remember(Definition definition);
  Error closed() const;
  Call call_for(Verb verb, const Definition& known, const std::vector<KeyHash>& keys,
                std::span<const std::size_t> which) const;
  std::vector<Call> calls_for(Verb verb, const Definition& known, const std::vector<KeyHash>& keys,
                              std::span<const std::size_t> which, std::size_t a_script) const;
  Task<std::vector<Value>> send(const std::vector<Call>& calls, Verb verb);
  Task<void> need_links(Definition known);
  Task<std::optional<std::vector<bool>>> ask_bits(Definition known, std::vector<KeyHash> keys);
  Task<void> grow(Definition known);
  Task<bool> add_to_next(std::string id, std::vector<KeyHash> keys);
  std::shared_ptr<SharedFilter> next_of(const std::string& id);

  /// Calls what `make` makes of the definition until that is the one in force. Null: there is no
  /// filter.
  Task<Value> manage(std::function<Call(const Definition&)> make);

  Store& store_;
  const FilterNames names_;
  const SharedBloomOptions options_;
  const std::string id_;                     // of the rebuild that this one is; empty: none
  const std::chrono::milliseconds lease_{};  // of that
  const bool both_ = false;
  const std::string rebuilt_;  // the name of the filter that it will replace
  std::mutex mutex_;
  std::optional<Definition> known_;
  std::shared_ptr<SharedFilter> next_;  // the rebuild that was seen last
};

}  // namespace sluice::bloom
