/// What a client has said of itself: its "name", "user", "lib-name" and "lib-ver".
#pragma once

#include <string>
#include <string_view>

namespace sluice::front {

/// One string, since most clients say little: "name=x lib-name=y ".
class OwnWords {
 public:
  static constexpr std::size_t longest = 256;  ///< bytes of one

  /// Empty: it has said nothing of that.
  std::string_view of(std::string_view what) const noexcept;
  /// Gives the error that refuses the value; empty: it is kept.
  std::string take(std::string_view what, std::string_view value);
  /// Of CLIENT SETINFO: as take(). `option` in any case.
  std::string take_info(std::string_view option, std::string_view value);
  /// REQUIRES: no blank is in it.
  void keep(std::string_view what, std::string_view value);

  /// For a successor.
  const std::string& all() const noexcept { return all_; }
  void set_all(const std::string& all) { all_ = all; }
  void clear() noexcept { all_.clear(); }

 private:
  std::string all_;
};

}  // namespace sluice::front
