// What the program writes, and which keys it takes, by the modes of files. It needs no server.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "server/curl.hpp"
#include "server/served.hpp"
#include "support/certificates.hpp"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using test::Served;

class Private : public testing::Test {
 protected:
  Private() : umask_(::umask(022)) {}
  ~Private() override { ::umask(umask_); }

  static ::mode_t mode_of(const fs::path& path) {
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777;
  }

  const test::TempDir folder_;
  const ::mode_t umask_;
};

/// Each file and each folder that it makes, under the umask that a shell has.
TEST_F(Private, SV14_WhatTheProgramMakesIsItsOwnersAlone) {
  Served served{folder_, 0, {"--data", (folder_ / "some" / "data").string(), "--sale", "tea=100"}};
  ASSERT_TRUE(served.begins()) << served.output();
  EXPECT_EQ(test::ask(served.port(), "POST", "/v1/sales/tea/orders",
                      {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "1"}})
                .status,
            201);
  int found = 0;
  EXPECT_EQ(mode_of(folder_ / "some" / "data"), 0700);
  for (const auto& entry : fs::recursive_directory_iterator{folder_ / "some" / "data"}) {
    ++found;
    EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700 : 0600) << entry.path();
  }
  EXPECT_GE(found, 5) << "the database with its log, the store with its log";
  served.process().terminate();
  EXPECT_EQ(served.process().wait(), 0);
}

TEST_F(Private, SV14_AKeyOfTlsThatOthersReadIsRefused) {
  test::Certificates certificates;
  for (const ::mode_t mode : {0644, 0604, 0640, 0660, 0666, 0602, 0600, 0400}) {
    ASSERT_EQ(::chmod(certificates["server.key"].c_str(), mode), 0);
    Served served{folder_,
                  static_cast<int>(mode),
                  {"--certificate", certificates["server.pem"], "--key", certificates["server.key"],
                   "--sale", "tea=1"}};
    if (mode == 0600 || mode == 0400) {
      EXPECT_TRUE(served.begins()) << served.output();
      continue;
    }
    ASSERT_FALSE(served.begins()) << std::oct << mode;
    EXPECT_EQ(served.process().wait(), 64) << std::oct << mode;
    EXPECT_NE(served.output().find("chmod 600"), std::string::npos) << served.output();
  }
}

}  // namespace
}  // namespace sluice::server
