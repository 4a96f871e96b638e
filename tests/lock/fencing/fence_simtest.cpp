/// The checker in Redis, and the lines of docs/fencing.md.
#include <array>
#include <fstream>
#include <sstream>

#include "lock/virtual_lock.hpp"
#include "sluice/fencing.hpp"
#include "support/paths.hpp"

namespace sluice {
namespace {

class FenceTest : public VirtualLock {
 protected:
  std::string value(std::string_view key) {
    const Value value = store_->run({"GET", key}).get();
    return value.is_null() ? "none" : value.as_text();
  }
  Fence fence_{line_, "books"};
};

TEST_F(FenceTest, AdmitsWhatIsNotSmaller) {
  EXPECT_TRUE(fence_.admit({5}).get());
  EXPECT_TRUE(fence_.admit({5}).get());
  EXPECT_TRUE(fence_.admit({10}).get()) << "as numbers, not as text";
  const auto refused = fence_.admit({9}).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().largest.value, 10U);
  EXPECT_EQ(value("sluice_fence:{books}"), "10");
  EXPECT_EQ(fence_.key(), "sluice_fence:{books}");
}

TEST_F(FenceTest, ComparesExactlyUpToItsBound) {
  const std::uint64_t bound = Fence::largest_token.value;
  EXPECT_TRUE(fence_.admit({bound - 1}).get());
  EXPECT_FALSE(fence_.admit({bound - 2}).get());
  EXPECT_TRUE(fence_.admit({bound}).get());
  EXPECT_EQ(fence_.admit({bound - 1}).get().error().largest.value, bound);
  EXPECT_EQ(value("sluice_fence:{books}"), std::to_string(bound));
  EXPECT_THROW((void)fence_.admit({bound + 1}).get(), Error);
  EXPECT_THROW((void)fence_.run({bound + 1}, {"k"}, {"SET", "k", "v"}).get(), Error);
  EXPECT_THROW((void)fence_.admit({0}).get(), Error);
}

TEST_F(FenceTest, Attack_AKeyThatHoldsNoTokenIsRefusedAndLeftAsItIs) {
  for (const auto* text : {"text", "", "1.5", "-1", "inf", "0x10", "99999999999999999999"}) {
    SCOPED_TRACE(text);
    store_->run({"SET", "sluice_fence:{books}", text}).get();
    EXPECT_EQ(error_of(fence_.admit({5})), Errc::wrong_type);
    EXPECT_EQ(error_of(fence_.run({5}, {"k"}, {"SET", "k", "v"})), Errc::wrong_type);
    EXPECT_EQ(value("sluice_fence:{books}"), text);
  }
}

TEST_F(FenceTest, RunsACommandForAnAdmittedTokenAlone) {
  const auto set = [&](std::uint64_t token, std::string_view text) {
    return fence_.run({token}, {"{books}:total"}, {"SET", "{books}:total", text}).get();
  };
  EXPECT_EQ(set(9, "a").value(), Value::simple_string("OK"));
  EXPECT_EQ(set(10, "b").value(), Value::simple_string("OK"));
  EXPECT_EQ(set(9, "late"), Unexpected{StaleToken{{10}}});
  EXPECT_EQ(value("{books}:total"), "b");
}

TEST_F(FenceTest, RepliesOfEveryKindComeThrough) {
  const auto run = [&](std::initializer_list<std::string_view> command) {
    return fence_.run({5}, {"{books}:x"}, command).get().value();
  };
  EXPECT_EQ(run({"RPUSH", "{books}:x", "a", "b"}), Value::integer(2));
  EXPECT_EQ(run({"LRANGE", "{books}:x", "0", "-1"}),
            Value::array({Value::bulk_string("a"), Value::bulk_string("b")}));
  EXPECT_EQ(run({"LPOS", "{books}:x", "c"}), Value{});
  EXPECT_THROW((void)run({"INCR", "{books}:x"}), Error);
  EXPECT_THROW((void)fence_.run({5}, {}, {}).get(), Error);
}

TEST_F(FenceTest, CommandsMayBeLong) {
  std::vector<std::string_view> command{"RPUSH", "{books}:x"};
  command.resize(7000, "a");
  const std::array<std::string_view, 1> keys{"{books}:x"};
  const auto run = [&] { return fence_.run({5}, Words{keys}, Words{command}).get(); };
  EXPECT_EQ(run().value(), Value::integer(6998));
  command.push_back("a");
  EXPECT_THROW((void)run(), Error);
}

TEST_F(FenceTest, PausedHolderCannotWriteAfterTheNext) {  // W06
  Mutex mutex{line_, "books", {.lease = 1s, .watchdog = false}};
  auto paused = mutex.acquire().get();
  clock_.advance(2s);
  auto next = mutex.acquire().get();
  const auto write = [&](FencingToken token, std::string_view text) {
    return fence_.run(token, {"{books}:total"}, {"SET", "{books}:total", text}).get();
  };
  EXPECT_TRUE(write(next.token(), "right"));
  EXPECT_FALSE(write(paused.token(), "wrong"));
  EXPECT_EQ(value("{books}:total"), "right");
}

TEST_F(FenceTest, LostRepliesDoNoHarm) {
  fail_next("lock/fencing/admit", Fault::reply_lost);
  EXPECT_TRUE(fence_.admit({5}).get());
  fail_next("lock/fencing/run", Fault::reply_lost);
  try {
    (void)fence_.run({6}, {"{books}:n"}, {"INCR", "{books}:n"}).get();
    FAIL() << "repeated what counts";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
  EXPECT_EQ(value("{books}:n"), "1");
  fail_next("lock/fencing/run", Fault::reply_lost);
  EXPECT_TRUE(
      fence_.run({6}, {"{books}:t"}, {"SET", "{books}:t", "x"}, {.repeatable = true}).get());
}

/// What stands between ```lua and ``` in the page.
std::string lua_of_the_page() {
  std::ifstream page{test::source_path("docs/fencing.md")};
  std::ostringstream lines;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```lua") {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      lines << line << '\n';
    }
  }
  return lines.str();
}

TEST_F(FenceTest, LinesOfThePageWork) {
  const std::string script = lua_of_the_page();
  ASSERT_FALSE(script.empty());
  const auto run = [&](std::string_view token, std::string_view text) {
    return store_->run({"EVAL", script, "2", "sluice_fence:{books}", "{books}:total", token, text})
        .get();
  };
  EXPECT_EQ(run("5", "a"), Value::integer(1));
  EXPECT_EQ(run("9", "b"), Value::integer(1));
  EXPECT_EQ(run("5", "late"), Value::integer(0));
  EXPECT_EQ(value("{books}:total"), "b");
  EXPECT_FALSE(fence_.admit({8}).get()) << "it is the same fence";
}

}  // namespace
}  // namespace sluice
