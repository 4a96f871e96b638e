#include "support/free_port.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>

#include "base/descriptor.hpp"

namespace sluice::test {
namespace {

using Ports = std::array<std::uint16_t, 100>;

Ports take() {
  Ports ports;
  for (auto& port : ports) port = free_port();
  return ports;
}

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    const int made = ::pipe(ends);
    from = Descriptor{made < 0 ? made : ends[0], "pipe"};
    to = Descriptor{ends[1], "pipe"};
  }
  Descriptor from, to;
};

/// Both look for theirs from the same one on, at the same time.
TEST(FreePort, IsGivenOnceToAllProcesses) {
  free_port();
  Pipe taken, end;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    end.to.close();
    const Ports theirs = take();
    char nothing = 0;
    const bool done = ::write(taken.to.number(), &theirs, sizeof theirs) == sizeof theirs &&
                      ::read(end.from.number(), &nothing, 1) == 0;
    ::_exit(done ? 0 : 1);
  }
  Ports theirs{};
  ASSERT_EQ(::read(taken.from.number(), &theirs, sizeof theirs),
            static_cast<ssize_t>(sizeof theirs));
  const Ports ours = take();
  end.to.close();
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);

  std::set<std::uint16_t> all{ours.begin(), ours.end()};
  all.insert(theirs.begin(), theirs.end());
  EXPECT_EQ(all.size(), 2 * ours.size());
}

}  // namespace
}  // namespace sluice::test
