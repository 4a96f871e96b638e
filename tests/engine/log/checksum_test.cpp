#include "engine/log/checksum.hpp"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

using Line = ChecksumReader::Line;

std::string sealed(ChecksumWriter& writer, std::string bytes) {
  writer.seal(bytes);
  return bytes;
}

/// Feeds lines that begin with '#' as comments, the rest as they are.
Line read(ChecksumReader& reader, std::string_view file) {
  Line last = Line::other;
  while (!file.empty()) {
    const auto line = file.substr(0, file.find('\n') + 1);
    const auto taken = line.starts_with('#') ? reader.take(line) : Line::other;
    if (taken == Line::other)
      reader.add(line);
    else
      last = taken;
    file.remove_prefix(line.size());
  }
  return last;
}

TEST(Checksum, IsRightForWhatWasWritten) {
  ChecksumWriter writer;
  auto file = sealed(writer, "one\n");
  file += sealed(writer, "two\n#TS:1\r\nthree\n");
  ChecksumReader reader;
  EXPECT_FALSE(reader.has_key());
  EXPECT_EQ(read(reader, file), Line::right);
  EXPECT_TRUE(reader.has_key());
  file[file.find("#TS:1") + 4] = '2';
  EXPECT_EQ(read(reader, file), Line::wrong) << "comments of others are summed, too";
}

TEST(Checksum, NothingIsSealedForNothing) {
  ChecksumWriter writer;
  EXPECT_EQ(sealed(writer, ""), "");
}

TEST(Checksum, IsWrongWithoutItsKey) {
  ChecksumReader reader;
  EXPECT_EQ(reader.take("#SUM:0123456789abcdef\r\n"), Line::wrong);
  EXPECT_EQ(reader.take("#TS:1700000000\r\n"), Line::other);
  EXPECT_EQ(reader.take("#SUM:0123456789ABCDEF\r\n"), Line::other);
  EXPECT_EQ(reader.take("#SUM:0123456789abcdef\n"), Line::other);
}

TEST(Checksum, TellsWhatWasWrittenBehindABrokenPlace) {
  ChecksumWriter writer;
  const auto first = sealed(writer, "one\n");
  const auto second = sealed(writer, "two\n");
  ChecksumReader reader;
  read(reader, first);
  EXPECT_TRUE(reader.ends_in(second));
  EXPECT_TRUE(reader.ends_in("$9999\r\nvalue\r\n" + second));
  EXPECT_FALSE(reader.ends_in(second.substr(0, second.size() - 1)));
  ChecksumWriter other;
  EXPECT_FALSE(reader.ends_in(sealed(other, "a value that looks like a log\n")));
  EXPECT_FALSE(ChecksumReader{}.ends_in(second)) << "no key, no proof";
}

}  // namespace
}  // namespace sluice::engine
