/// A fresh folder that is gone, with all in it, when its owner is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sluice::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string str() const { return path_.string(); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Deletes what is in it; the folder stays.
  void clear();

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::test
