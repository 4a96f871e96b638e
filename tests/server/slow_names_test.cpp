// A name server that does not answer holds up nobody. getaddrinfo here is the test's: it takes the
// place of libc's in this program, and of one name it answers when the test says so.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "server/http_client.hpp"
#include "sluice/clock.hpp"
#include "sluice/error.hpp"
#include "support/comes_true.hpp"

namespace {

std::atomic<int> names_waiting{0};
std::atomic<bool> names_are_answered{false};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  if (host && std::strcmp(host, "slow.test") == 0) {
    ++names_waiting;
    names_are_answered.wait(false);
    --names_waiting;
    return EAI_NONAME;
  }
  static const auto libc =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return libc(host, port, hints, found);
}

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

/// Lets the name server answer at the end, and waits until nobody is in this file any more.
class SlowNames : public testing::Test {
 protected:
  ~SlowNames() override {
    names_are_answered = true;
    names_are_answered.notify_all();
    EXPECT_TRUE(test::comes_true([] { return names_waiting == 0; }));
    names_are_answered = false;
  }
};

TEST_F(SlowNames, ARequestEndsWithinItsLimits) {
  HttpClient client{{.connect = 50ms, .whole = 100ms}};
  try {
    client.post("http://slow.test/", {}, "x");
    ADD_FAILURE() << "it was asked";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::timeout) << failure.message();
    EXPECT_EQ(failure.effect(), Effect::none);
  }
  EXPECT_TRUE(test::comes_true([] { return names_waiting == 1; })) << "it has not answered yet";
}

TEST_F(SlowNames, ARequestEndsWhenTheProcessStops) {
  HttpClient client{{.connect = 600s, .whole = 600s, .after_stop = 1ms}};
  std::jthread stopper{[&] {
    EXPECT_TRUE(test::comes_true([] { return names_waiting == 1; }));
    client.stop();
  }};
  try {
    client.post("http://slow.test/", {}, "x");
    ADD_FAILURE() << "it was asked";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::closed) << failure.message();
  }
  EXPECT_EQ(names_waiting, 1);
}

}  // namespace
}  // namespace sluice::server
