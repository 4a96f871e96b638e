// Files of filters: they come back as they were, or are refused.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "bloom/hash.hpp"
#include "sluice/bloom_filter.hpp"
#include "sluice/error.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

std::string read(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void write(const std::string& path, std::string_view bytes) {
  std::ofstream{path, std::ios::binary}.write(bytes.data(),
                                              static_cast<std::streamsize>(bytes.size()));
}

BloomFilter filled(BloomKind kind, int keys) {
  BloomFilter filter{{.kind = kind, .expected = 40, .error_rate = 0.05}};
  for (int i = 0; i < keys; ++i) filter.add(i);
  return filter;
}

constexpr std::size_t checksum_at = 64;

/// The checksum that the changed bytes should have.
std::string summed_anew(std::string bytes) {
  bloom::Checksum sum;
  const auto all = std::as_bytes(std::span{bytes});
  sum.add(all.first(checksum_at));
  sum.add(all.subspan(checksum_at + 8));
  const auto value = sum.value();
  std::memcpy(bytes.data() + checksum_at, &value, sizeof value);
  return bytes;
}

class EachKindOfFile : public testing::TestWithParam<BloomKind> {
 protected:
  /// Both ways to read it must agree. Empty: it was read.
  std::string refusal_of(std::string_view bytes) {
    const auto path = (folder_ / "changed").string();
    write(path, bytes);
    std::string refusals[2];
    for (const bool is_mapped : {false, true}) try {
        auto filter = is_mapped ? BloomFilter::map(path) : BloomFilter::load(path);
        use(filter);
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::corrupt);
        EXPECT_TRUE(error.message().contains(path)) << error.message();
        refusals[is_mapped ? 1 : 0] = error.message();
      }
    EXPECT_EQ(refusals[0], refusals[1]);
    return refusals[0];
  }

  /// Whatever was read must not harm.
  static void use(BloomFilter& filter) {
    for (int i = 0; i < 100; ++i) filter.add(i);
    EXPECT_TRUE(filter.contains(99));
    static_cast<void>(filter.info());
    static_cast<void>(BloomFilter{filter});
  }

  test::TempDir folder_;
  std::string path_ = (folder_ / "filter").string();
};

INSTANTIATE_TEST_SUITE_P(Bloom, EachKindOfFile,
                         testing::Values(BloomKind::blocked, BloomKind::guava, BloomKind::guava_32,
                                         BloomKind::counting, BloomKind::scalable),
                         [](const auto& test) { return std::string{to_string(test.param)}; });

TEST_P(EachKindOfFile, ComesBackAsItWas) {
  auto saved = filled(GetParam(), 200);
  saved.save(path_);
  for (const bool is_mapped : {false, true}) {
    auto filter = is_mapped ? BloomFilter::map(path_) : BloomFilter::load(path_);
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(filter.contains(i));
    const auto was = saved.info();
    const auto is = filter.info();
    EXPECT_EQ(is.kind, was.kind);
    EXPECT_EQ(is.bits, was.bits);
    EXPECT_EQ(is.hashes, was.hashes);
    EXPECT_EQ(is.filters, was.filters);
    EXPECT_EQ(is.error_rate, was.error_rate);
    EXPECT_EQ(filter.options().expected, 40U);
    EXPECT_EQ(filter.options().error_rate, 0.05);
    filter.save(path_ + "2");
    EXPECT_EQ(read(path_ + "2"), read(path_));
  }
}

TEST_P(EachKindOfFile, OfOneAdderIsTheSame) {
  auto many = filled(GetParam(), 30);
  many.save(path_);
  BloomFilter one{BloomFilter::load(path_), BloomAdders::one};
  EXPECT_EQ(BloomFilter{one}.options().adders, BloomAdders::one);
  EXPECT_EQ(BloomFilter::load(path_).options().adders, BloomAdders::many);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(one.add(i % 80), many.add(i % 80)) << i;
  if (GetParam() == BloomKind::counting) {
    EXPECT_TRUE(one.remove(5));
    EXPECT_TRUE(many.remove(5));
  }
  const auto more = filled(GetParam(), 200);
  one.merge(more);
  many.merge(more);
  one.save(path_);
  many.save(path_ + "2");
  EXPECT_EQ(read(path_), read(path_ + "2"));
}

TEST_P(EachKindOfFile, WhatIsAddedToAMappedOneIsNotInTheFile) {
  filled(GetParam(), 30).save(path_);
  const auto before = read(path_);
  auto first = BloomFilter::map(path_);
  const auto second = BloomFilter::map(path_);
  for (int i = 1000; i < 1020; ++i) first.add(i);
  for (int i = 1000; i < 1020; ++i) EXPECT_TRUE(first.contains(i));
  int found = 0;
  for (int i = 1000; i < 1020; ++i) found += second.contains(i) ? 1 : 0;
  EXPECT_LT(found, 10);
  EXPECT_EQ(read(path_), before);
}

TEST_P(EachKindOfFile, AMappedOneOutlivesItsReplacement) {
  filled(GetParam(), 30).save(path_);
  const auto mapped = BloomFilter::map(path_);
  filled(GetParam(), 0).save(path_);
  EXPECT_TRUE(mapped.contains(29));
  EXPECT_FALSE(BloomFilter::load(path_).contains(29));
  std::filesystem::remove(path_);
  EXPECT_TRUE(mapped.contains(29));
}

TEST_P(EachKindOfFile, ThatIsCutAtAnyByteIsRefused) {
  filled(GetParam(), 90).save(path_);
  const auto bytes = read(path_);
  for (std::size_t kept = 0; kept < bytes.size(); ++kept)
    ASSERT_NE(refusal_of(std::string_view{bytes}.substr(0, kept)), "") << kept;
  EXPECT_NE(refusal_of(bytes + '\0'), "");
  EXPECT_EQ(refusal_of(bytes), "");
}

TEST_P(EachKindOfFile, ThatIsChangedAtAnyByteIsRefused) {
  filled(GetParam(), 90).save(path_);
  const auto bytes = read(path_);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    ASSERT_NE(refusal_of(changed), "") << at;
  }
}

/// One who knows the checksum: the head and the table say what they like.
TEST_P(EachKindOfFile, ThatLiesWithTheRightChecksumDoesNoHarm) {
  filled(GetParam(), 90).save(path_);
  const auto bytes = read(path_);
  constexpr std::uint64_t lies[] = {0, 1, 2, 3, 5, 64, 256, 1ULL << 40, 1ULL << 63, ~0ULL};
  int refused = 0;
  for (std::size_t at = 0; at + 8 <= std::min<std::size_t>(bytes.size(), 200); at += 8)
    for (const auto lie : lies) {
      auto changed = bytes;
      std::memcpy(changed.data() + at, &lie, sizeof lie);
      if (at != checksum_at) refused += refusal_of(summed_anew(changed)).empty() ? 0 : 1;
    }
  EXPECT_GT(refused, 40);
}

/// What fills up its last line would be counted among the bits of the filter.
TEST_P(EachKindOfFile, ThatHasBitsBehindItsLastIsRefused) {
  BloomFilter filter{{.kind = GetParam(), .expected = 4}};
  filter.add(1);
  filter.save(path_);
  auto bytes = read(path_);
  EXPECT_EQ(refusal_of(summed_anew(bytes)), "");
  bytes.back() = 1;
  EXPECT_NE(refusal_of(summed_anew(bytes)), "");
}

TEST(BloomFile, ThatIsNoneIsRefusedWithItsName) {
  const test::TempDir folder;
  const auto missing = (folder / "missing").string();
  ::mkfifo((folder / "pipe").c_str(), 0600);
  for (const auto& path : {missing, folder.str(), (folder / "pipe").string()})
    for (const bool is_mapped : {false, true}) try {
        static_cast<void>(is_mapped ? BloomFilter::map(path) : BloomFilter::load(path));
        ADD_FAILURE() << path;
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_argument);
        EXPECT_TRUE(error.message().contains(path)) << error.message();
      }
  EXPECT_THROW(BloomFilter{}.save((folder / "no").string() + "/filter"), Error);
  EXPECT_THROW(BloomFilter{}.save(folder.str()), Error);
  EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
}

TEST(BloomFile, ASaveReplacesNothingButAFile) {
  const test::TempDir folder;
  const auto pipe = (folder / "pipe").string();
  ::mkfifo(pipe.c_str(), 0600);
  std::filesystem::create_symlink(pipe, folder / "link");  // as /dev/stdout is one
  for (const auto& path : {pipe, (folder / "link").string()}) try {
      BloomFilter{}.save(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_TRUE(error.message().contains(path)) << error.message();
    }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 2);
}

TEST(BloomFile, BF1_ASaveThroughALinkWritesWhatItLeadsTo) {
  namespace fs = std::filesystem;
  const test::TempDir folder;
  fs::create_directory(folder / "deep");
  fs::create_symlink("deep/link", folder / "first");
  fs::create_symlink("file", folder / "deep/link");  // dangling at first
  for (const int keys : {1, 2}) {
    filled(BloomKind::guava, keys).save((folder / "first").string());
    EXPECT_TRUE(BloomFilter::load((folder / "deep/file").string()).contains(keys - 1));
  }
  EXPECT_TRUE(fs::is_symlink(folder / "first") && fs::is_symlink(folder / "deep/link"));
  fs::create_symlink("round", folder / "round");
  EXPECT_THROW(BloomFilter{}.save((folder / "round").string()), Error);
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator{folder.path()}, {}), 5);
}

TEST(BloomFile, BF2_ASaveKeepsTheMode) {
  const test::TempDir folder;
  const auto path = (folder / "filter").string();
  BloomFilter{}.save(path);
  for (const mode_t mode : {0640, 0600, 0664}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    BloomFilter{}.save(path);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, mode);
  }
}

TEST(BloomFile, APathWithANulIsRefusedWhole) {
  const test::TempDir folder;
  const std::string path = (folder / "filter").string();
  BloomFilter{}.save(path);
  const auto before = read(path);
  const std::string cut = path + std::string(1, '\0') + "other";
  const std::function<void()> calls[] = {[&] { filled(BloomKind::guava, 3).save(cut); },
                                         [&] { (void)BloomFilter::load(cut); },
                                         [&] { (void)BloomFilter::map(cut); }};
  for (const auto& call : calls) try {
      call();
      ADD_FAILURE() << "the part before the NUL was taken for the path";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_TRUE(error.message().contains(path + "?other")) << error.message();
    }
  EXPECT_EQ(read(path), before);
}

TEST(BloomFile, LargerThanAllowedIsMappedButNotLoaded) {
  const test::TempDir folder;
  const auto path = (folder / "filter").string();
  filled(BloomKind::blocked, 30).save(path);
  EXPECT_THROW(static_cast<void>(BloomFilter::load(path, 100)), Error);
  EXPECT_TRUE(BloomFilter::map(path).contains(29));
}

/// No file may become larger than so many bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  rlimit old_{};
};

TEST(BloomFile, ASaveThatFailsLeavesTheOldOneAndNothingElse) {
  const test::TempDir folder;
  const auto path = (folder / "filter").string();
  filled(BloomKind::blocked, 30).save(path);
  const auto before = read(path);
  for (const rlim_t room : {0, 50, 100, 20'000}) {
    const FullDisk disk{room};
    EXPECT_THROW(BloomFilter{}.save(path), Error);
  }
  EXPECT_EQ(read(path), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 1);
}

}  // namespace
}  // namespace sluice
