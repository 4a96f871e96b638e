/// A snapshot in Redis's RDB form, versions 1 to 12, as the commands that make what it holds. It
/// knows nothing of the engine.
///
/// Read: strings, lists, sets, sorted sets, hashes and streams in every encoding that Redis 3.2 to
/// 8 writes, with their times of expiry, in all databases. Not kept, since nothing here uses them:
/// how long a key was not used or how often (LFU), when a consumer of a group was last seen.
/// Refused by name: values and data of modules, fields of a hash with a time of their
/// own, and types or versions of servers that came later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/error.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// Runs one of them.
using RunCommand = std::function<void(Words)>;

/// Bytes that come from somewhere, in their order.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  /// The next `size` bytes; good until the next call. Throws Error{corrupt} where the source ends
  /// before.
  virtual std::string_view take(std::uint64_t size) = 0;
};

/// A text as a source.
class TextSource final : public SnapshotSource {
 public:
  explicit TextSource(std::string_view text) : rest_(text) {}
  std::string_view take(std::uint64_t size) override {
    if (size > rest_.size()) throw Error{Errc::corrupt, "the value ends early"};
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool is_at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// Whether what begins so is a snapshot.
inline bool is_snapshot(std::string_view bytes) noexcept { return bytes.starts_with("REDIS"); }

struct SnapshotReport {
  bool is_of_log = false;  ///< the file goes on with commands behind it
};

/// Runs commands that make each key anew, of at most 64 elements each; a key that is there already
/// is not looked at. Each key is complete before the next begins.
/// Throws Error: corrupt (what is wrong), bad_argument (what the snapshot holds that no command
/// here makes), and what `run` throws. Some commands have run then.
SnapshotReport read_snapshot(SnapshotSource& source, const RunCommand& run);

/// The mark before each library of functions, whose code is a text behind it.
inline constexpr unsigned snapshot_mark_library = 245;

/// The same for the value of one key, as DUMP gives it, without what stands at its end.
void read_value(SnapshotSource& source, const std::string& key, const RunCommand& run);

}  // namespace sluice::engine
