#include "engine/log/memory_disk.hpp"

#include <algorithm>
#include <system_error>

namespace sluice::engine::test {

using Guard = std::lock_guard<std::mutex>;

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryDisk& disk, std::shared_ptr<MemoryDisk::Inode> inode)
      : disk_(disk), inode_(std::move(inode)) {}

  void append(std::string_view bytes) override {
    const Guard lock{disk_.mutex_};
    if (disk_.fails()) {
      inode_->data += bytes.substr(0, bytes.size() / 2);
      throw std::system_error{disk_.error_, std::generic_category(), "cannot append"};
    }
    const auto left = disk_.capacity_ - std::min(disk_.capacity_, disk_.used());
    inode_->data += bytes.substr(0, left);
    if (left < bytes.size())
      throw std::system_error{ENOSPC, std::generic_category(), "cannot append"};
  }
  void sync() override {
    std::unique_lock lock{disk_.mutex_};
    ++disk_.syncing_;
    disk_.released_.wait(lock, [&] { return !disk_.held_; });
    --disk_.syncing_;
    disk_.check("sync");
    ++disk_.syncs_;
    inode_->synced = inode_->data;
  }
  void truncate(std::uint64_t size) override {
    const Guard lock{disk_.mutex_};
    disk_.check("truncate");
    inode_->data.resize(size);
  }
  std::uint64_t size() const override {
    const Guard lock{disk_.mutex_};
    return inode_->data.size();
  }
  std::size_t read(std::uint64_t offset, std::span<char> into) const override {
    const Guard lock{disk_.mutex_};
    return offset < inode_->data.size() ? inode_->data.copy(into.data(), into.size(), offset) : 0;
  }

 private:
  MemoryDisk& disk_;
  std::shared_ptr<MemoryDisk::Inode> inode_;
};

class MemoryFolder final : public Folder {
 public:
  explicit MemoryFolder(MemoryDisk& disk) : disk_(disk) {}

  std::unique_ptr<File> create(const std::string& name) override {
    const Guard lock{disk_.mutex_};
    disk_.check("create " + name);
    auto& inode = disk_.names_[name];
    if (!inode) inode = std::make_shared<MemoryDisk::Inode>();
    inode->data.clear();
    return std::make_unique<MemoryFile>(disk_, inode);
  }
  std::unique_ptr<File> open(const std::string& name) override {
    const Guard lock{disk_.mutex_};
    const auto found = disk_.names_.find(name);
    if (found == disk_.names_.end())
      throw std::system_error{ENOENT, std::generic_category(), "cannot open " + name};
    return std::make_unique<MemoryFile>(disk_, found->second);
  }
  void rename(const std::string& from, const std::string& to) override {
    const Guard lock{disk_.mutex_};
    disk_.check("rename " + from);
    disk_.names_[to] = disk_.names_.at(from);
    disk_.names_.erase(from);
  }
  void remove(const std::string& name) override {
    const Guard lock{disk_.mutex_};
    disk_.check("remove " + name);
    disk_.names_.erase(name);
  }
  void sync() override {
    const Guard lock{disk_.mutex_};
    disk_.check("sync the folder");
    disk_.synced_names_ = disk_.names_;
  }
  std::vector<std::string> list() const override {
    const Guard lock{disk_.mutex_};
    std::vector<std::string> names;
    for (const auto& [name, inode] : disk_.names_) names.push_back(name);
    return names;
  }
  const std::string& path() const noexcept override { return path_; }

 private:
  MemoryDisk& disk_;
  const std::string path_ = "disk";
};

std::unique_ptr<Folder> MemoryDisk::folder() { return std::make_unique<MemoryFolder>(*this); }

bool MemoryDisk::fails() {
  const auto number = operations_++;
  return number == fail_at_ || (for_good_ && number > fail_at_);
}

void MemoryDisk::check(const std::string& what) {
  if (fails()) throw std::system_error{error_, std::generic_category(), "cannot " + what};
}

std::uint64_t MemoryDisk::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, inode] : names_) bytes += inode->data.size();
  return bytes;
}

std::size_t MemoryDisk::operations() const {
  const Guard lock{mutex_};
  return operations_;
}

std::size_t MemoryDisk::syncs() const {
  const Guard lock{mutex_};
  return syncs_;
}

void MemoryDisk::hold_syncs() {
  const Guard lock{mutex_};
  held_ = true;
}

void MemoryDisk::release_syncs() {
  const Guard lock{mutex_};
  held_ = false;
  released_.notify_all();
}

bool MemoryDisk::is_syncing() const {
  const Guard lock{mutex_};
  return syncing_ > 0;
}

void MemoryDisk::fail(std::size_t at, int error, bool for_good) {
  const Guard lock{mutex_};
  fail_at_ = at;
  error_ = error;
  for_good_ = for_good;
}

void MemoryDisk::set_capacity(std::uint64_t bytes) {
  const Guard lock{mutex_};
  capacity_ = bytes;
}

void MemoryDisk::heal() {
  const Guard lock{mutex_};
  fail_at_ = never;
  for_good_ = false;
  capacity_ = std::numeric_limits<std::uint64_t>::max();
}

void MemoryDisk::cut_power() {
  const Guard lock{mutex_};
  names_ = synced_names_;
  for (auto& [name, inode] : names_) {
    inode = std::make_shared<Inode>(*inode);  // a handle that is still open does not reach it
    inode->data = inode->synced;
  }
  synced_names_ = names_;
}

bool MemoryDisk::has(const std::string& name) const {
  const Guard lock{mutex_};
  return names_.contains(name);
}

std::string MemoryDisk::content(const std::string& name) const {
  const Guard lock{mutex_};
  return names_.at(name)->data;
}

void MemoryDisk::put(const std::string& name, std::string content) {
  const Guard lock{mutex_};
  auto inode = std::make_shared<Inode>();
  inode->data = content;
  inode->synced = std::move(content);
  names_[name] = inode;
  synced_names_[name] = inode;
}

}  // namespace sluice::engine::test
