/// The inverse of what a script has changed, step by step, so that a script which is ended becomes
/// one that never ran.
///
/// Each change of a container, a text or a keyspace adds the step that takes it back; the steps are
/// played from the last to the first, so each finds everything as it was right after its change.
/// What a change removes is kept by its step and not copied: taking back costs what changing did,
/// however large the key is.
///
/// A step may point at what a removal keeps whole and puts back where it was: entries of a keyspace
/// with their objects, nodes of tables, groups, consumers. What comes back as a new one (items of
/// small forms, pending entries) it names by place or id.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::engine {

class Undo {
 public:
  struct Step;
  enum class Way {
    back,    ///< take the change back
    forget,  ///< the change stays: destroy what the step keeps
  };
  /// Must not throw.
  using Play = void (*)(Undo& undo, Step& step, Way way);
  using Numbers = std::array<std::uint64_t, 4>;

  struct Step {
    Play play;
    void* target;
    void* other;  ///< `keeps`: owned by the step
    bool keeps;   ///< forgetting has to destroy something
    Numbers numbers;
  };

  /// Before the change, so that add() and keep() cannot fail after it: room for so many steps.
  void expect(std::size_t steps = 1) {
    if (steps_.capacity() - steps_.size() < steps || texts_.capacity() - texts_.size() < 2 * steps)
        [[unlikely]]
      make_room(steps);
  }
  void add(Play play, void* target, void* other = nullptr, Numbers numbers = {}) noexcept {
    steps_.push_back({play, target, other, false, numbers});
  }
  /// A step that owns `kept`, of about so many bytes.
  void add_keeping(Play play, void* target, void* kept, std::size_t bytes,
                   Numbers numbers = {}) noexcept {
    steps_.push_back({play, target, kept, true, numbers});
    ++keeping_;
    kept_ += bytes;
  }
  /// A text for the step that is added next; at most two a step, taken in reverse.
  void keep(std::string&& text) noexcept {
    kept_ += text.size();
    texts_.push_back(std::move(text));
  }
  std::string take() noexcept {
    std::string text = std::move(texts_.back());
    texts_.pop_back();
    return text;
  }

  /// So many bytes came to the data.
  void wrote(std::size_t bytes) noexcept { written_ += bytes; }

  bool empty() const noexcept { return steps_.empty(); }
  /// Memory that is in use only for the sake of the steps, about. What they keep of the data from
  /// before is none: that was there already.
  std::size_t bytes() const noexcept {
    return std::min(kept_, written_) + steps_.size() * sizeof(Step);
  }

  void take_back() noexcept;
  void forget() noexcept {
    if (!steps_.empty()) forget_steps();
  }

 private:
  void make_room(std::size_t steps);
  void forget_steps() noexcept;
  void clear() noexcept;

  std::vector<Step> steps_;
  std::vector<std::string> texts_;
  std::size_t keeping_ = 0;
  std::size_t kept_ = 0;     ///< bytes
  std::size_t written_ = 0;  ///< bytes
};

/// Bytes [begin, begin + size) of a text, and its size, are about to change.
void expect_change(Undo* undo, std::string& text, std::size_t begin, std::size_t size);
/// All of it is.
inline void expect_change(Undo* undo, std::string& text) {
  expect_change(undo, text, 0, text.size());
}

}  // namespace sluice::engine
