// Which temporaries may stand in a co_await expression. g++ 12 destroys some of them twice: these
// have to be named before. Each case awaits a Task that suspends, and counts what is alive
// afterwards.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "sluice/task.hpp"

namespace sluice {
namespace {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
constexpr bool destroys_twice = true;
#else
constexpr bool destroys_twice = false;
#endif

int alive = 0;

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  Counted(Counted&&) noexcept { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
};

struct Aggregate {
  Counted counted;
  int number = 0;
};

struct TrivialAggregate {
  int number = 0;
  bool flag = false;
};

class WithConstructor {
 public:
  explicit WithConstructor(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  Counted counted_;
  int number_;
};

class AwaitForms : public testing::Test {
 protected:
  template <class T>
  Task<int> later(T argument) {
    co_await gate_;
    if constexpr (std::is_invocable_v<T&>) {
      co_return argument();
    } else if constexpr (requires { argument.number(); }) {
      co_return argument.number();
    } else {
      co_return argument.number;
    }
  }
  Task<int> later_size(std::string text) {
    co_await gate_;
    co_return static_cast<int>(text.size());
  }
  Task<int> later_of(std::optional<Aggregate> argument) {
    co_await gate_;
    co_return argument->number;
  }
  Task<Aggregate> later_aggregate() {
    co_await gate_;
    co_return Aggregate{.counted = {}, .number = 3};
  }

  /// What `form` gave, and in alive_ how many Counted it left: 0 is right, less is a crash.
  int result_of(Task<int> form) {
    alive = 0;
    int result = -1;
    const auto run = [](Task<int> task, int& into) -> Task<void> { into = co_await task; };
    spawn(run(std::move(form), result));
    gate_.complete();
    alive_ = alive;
    return result;
  }

  Completion gate_;
  int alive_ = 0;
};

TEST_F(AwaitForms, ObjectsWithAConstructorAreRight) {
  const auto form = [](auto& self) -> Task<int> {
    co_return co_await self.later(WithConstructor{4});
  };
  EXPECT_EQ(result_of(form(*this)), 4);
  EXPECT_EQ(alive_, 0);
}

TEST_F(AwaitForms, StringsAreRight) {
  const auto form = [](auto& self, std::string key) -> Task<int> {
    co_return co_await self.later_size("a text that is too long to be kept in place, " + key);
  };
  EXPECT_EQ(result_of(form(*this, "key")), 48);
}

TEST_F(AwaitForms, TrivialAggregatesAreRight) {
  const auto form = [](auto& self) -> Task<int> {
    co_return co_await self.later(TrivialAggregate{.number = 5, .flag = true});
  };
  EXPECT_EQ(result_of(form(*this)), 5);
}

TEST_F(AwaitForms, AggregatesWithANameAreRight) {
  const auto form = [](auto& self) -> Task<int> {
    const Aggregate copied{.counted = {}, .number = 6};
    Aggregate moved{.counted = {}, .number = 7};
    const int first = co_await self.later_of(copied);
    co_return first + co_await self.later(std::move(moved));
  };
  EXPECT_EQ(result_of(form(*this)), 13);
  EXPECT_EQ(alive_, 0);
}

TEST_F(AwaitForms, AggregatesAsResultsAreRight) {
  const auto form = [](auto& self) -> Task<int> {
    const Aggregate result = co_await self.later_aggregate();
    co_return result.number;
  };
  EXPECT_EQ(result_of(form(*this)), 3);
  EXPECT_EQ(alive_, 0);
}

TEST_F(AwaitForms, LambdasWithTrivialCapturesAreRight) {
  const auto form = [](auto& self, int number) -> Task<int> {
    const std::function<int()> named = [counted = Counted{}, number] { return number; };
    const int first = co_await self.later(named);
    co_return first + co_await self.later([&number] { return number; });
  };
  EXPECT_EQ(result_of(form(*this, 8)), 16);
  EXPECT_EQ(alive_, 0);
}

TEST_F(AwaitForms, ConditionsAroundAnAwaitAreRight) {
  const auto form = [](auto& self, bool once) -> Task<int> {
    if (const int size = co_await self.later_size("seven77"); size != 7) co_return 0;
    co_return once&& co_await self.later_size("") == 0 ? co_await self.later_size("four") : 0;
  };
  EXPECT_EQ(result_of(form(*this, true)), 4);
}

TEST_F(AwaitForms, AggregatesWithoutANameAreDestroyedTwice) {
  const auto form = [](auto& self) -> Task<int> {
    co_return co_await self.later(Aggregate{.counted = {}, .number = 6});
  };
  EXPECT_EQ(result_of(form(*this)), 6);
  EXPECT_EQ(alive_ != 0, destroys_twice) << "name it, then await";
}

TEST_F(AwaitForms, AggregatesThatConvertAreDestroyedTwice) {
  const auto form = [](auto& self) -> Task<int> {
    co_return co_await self.later_of(Aggregate{.counted = {}, .number = 6});
  };
  EXPECT_EQ(result_of(form(*this)), 6);
  EXPECT_EQ(alive_ != 0, destroys_twice) << "name it, then await";
}

TEST_F(AwaitForms, LambdasWithOtherCapturesAreDestroyedTwice) {
  const auto form = [](auto& self) -> Task<int> {
    const Counted counted;
    co_return co_await self.later([counted] { return 9; });
  };
  EXPECT_EQ(result_of(form(*this)), 9);
  EXPECT_EQ(alive_ != 0, destroys_twice) << "name it, then await";
}

TEST_F(AwaitForms, ConditionalTemporariesAreDestroyedTwice) {
  const auto form = [](auto& self, bool first) -> Task<int> {
    co_return co_await self.later(first ? WithConstructor{1} : WithConstructor{2});
  };
  EXPECT_EQ(result_of(form(*this, true)), 1);
  EXPECT_EQ(alive_ != 0, destroys_twice) << "name it, then await";
}

}  // namespace
}  // namespace sluice
