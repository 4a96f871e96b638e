/// Whose turn it is among those that wait: nobody starves.
#include <list>

#include "lock/shared/virtual_shared.hpp"

namespace sluice {
namespace {

class Turns : public VirtualShared {
 protected:
  static int count_in(const auto& guests) {
    int in = 0;
    for (const auto& guest : guests) in += guest.in() ? 1 : 0;
    return in;
  }
  void put_dead_writer_first() {
    store_
        ->run({"ZADD", "sluice_rw_write_line:{prices}", "1",
               "w r1 2022 sluice:inbox:of-nobody dead:1 host 1 t1 dead"})
        .get();
  }
};

TEST_F(Turns, RW02_WriterAmongContinuousReadersIsNext) {
  std::list<Reader> readers;
  readers.emplace_back(here_, 0ms);
  Writer writer{there_, 1h};
  for (int i = 0; i < 20; ++i) {  // there is always one that wants to read before the last leaves
    readers.emplace_back(i % 2 ? here_ : there_, 1h);
    EXPECT_TRUE(readers.back().waits()) << "it came after the writer";
    clock_.advance(100ms);
  }
  readers.front().leave();
  EXPECT_TRUE(writer.in()) << "when those are gone that were in before it";
  EXPECT_EQ(count_in(readers), 0);
  writer.leave();
  EXPECT_EQ(count_in(readers), 20) << "all together, by one release";
}

TEST_F(Turns, RW02_ReadersFirstLetAWriterInAfterABoundedNumber) {
  SharedMutex mutex{line_, "prices", {.preference = Preference::readers, .overtaking = 4}};
  std::list<Reader> readers;
  readers.emplace_back(mutex, 0ms);
  Writer writer{there_, 1h};
  while (readers.back().in() && readers.size() < 100) {
    readers.emplace_back(mutex, 1h);
    if (readers.size() > 2) readers.erase(std::prev(readers.end(), 2));  // never nobody
    clock_.advance(100ms);
  }
  EXPECT_TRUE(writer.waits());
  EXPECT_TRUE(readers.back().waits()) << "four went past the writer, the fifth waits";
  readers.pop_front();
  EXPECT_TRUE(writer.in());
  writer.leave();
  EXPECT_TRUE(readers.back().in());
}

TEST_F(Turns, ReadersFirstGetTheLockAfterAWriter) {
  SharedMutex mutex{line_, "prices", {.preference = Preference::readers}};
  Writer first{mutex, 0ms};
  Writer second{mutex, 1h};
  Reader reader{mutex, 1h};
  Reader another{mutex, 1h};
  first.leave();
  EXPECT_TRUE(reader.in());
  EXPECT_TRUE(another.in());
  EXPECT_TRUE(second.waits());
  reader.leave();
  another.leave();
  EXPECT_TRUE(second.in());
}

TEST_F(Turns, RW02_WritersFirstLetReadersInAfterABoundedNumber) {
  SharedMutex mutex{line_, "prices", {.overtaking = 3}};
  std::list<Writer> writers;
  writers.emplace_back(mutex, 0ms);
  Reader reader{there_, 1h};
  Reader another{mutex, 1h};
  int past = 0;
  while (reader.waits() && past < 100) {
    writers.emplace_back(mutex, 1h);
    writers.emplace_back(mutex, 1h);  // never nobody
    writers.pop_front();
    if (writers.front().in()) ++past;
  }
  EXPECT_EQ(past, 3);
  EXPECT_TRUE(reader.in());
  EXPECT_TRUE(another.in());
  EXPECT_EQ(count_in(writers), 0);
  reader.leave();
  another.leave();
  EXPECT_EQ(count_in(writers), 1);
}

TEST_F(Turns, NoneGoesPastWhereTheyTakeTurns) {
  for (const auto preference : {Preference::writers, Preference::readers}) {
    SharedMutex mutex{line_, "prices", {.preference = preference, .overtaking = 0}};
    Writer first{mutex, 0ms};
    Reader reader{mutex, 1h};
    Writer second{mutex, 1h};
    first.leave();
    EXPECT_TRUE(reader.in());
    EXPECT_TRUE(second.waits());
    Reader late{mutex, 1h};
    EXPECT_TRUE(late.waits());
    reader.leave();
    EXPECT_TRUE(second.in());
    second.leave();
    EXPECT_TRUE(late.in());
  }
}

TEST_F(Turns, ReaderThatIsInEntersAgainPastAWriter) {
  const Owner owner;
  auto reading = here_.acquire_shared(owner).get();
  Writer writer{there_, 1h};
  EXPECT_FALSE(here_.try_acquire_shared().get());
  auto again = here_.try_acquire_shared(owner).get();
  ASSERT_TRUE(again) << "or it would wait for the writer, and the writer for it";
  reading.release().get();
  again->release().get();
  EXPECT_TRUE(writer.in());
}

TEST_F(Turns, WriterThatGivesUpLetsReadersIn) {
  Reader first{here_, 0ms};
  Writer writer{there_, 1h};
  Reader second{here_, 1h};
  EXPECT_TRUE(second.waits());
  writer.give_up();
  EXPECT_TRUE(second.in());
}

TEST_F(Turns, HandOverTakesOneScript) {
  Writer writer{there_, 0ms};
  std::list<Reader> readers;
  for (int i = 0; i < 10; ++i) readers.emplace_back(here_, 1h);
  const auto asked = line_.executed("lock/shared/acquire");
  const auto released = far_.executed("lock/shared/release");
  writer.leave();
  EXPECT_EQ(count_in(readers), 10);
  EXPECT_EQ(line_.executed("lock/shared/acquire"), asked) << "nobody had to ask";
  EXPECT_EQ(far_.executed("lock/shared/release"), released + 1);
}

TEST_F(Turns, GrantIsALeaseOnlyWhenItWasTakenUp) {
  Writer writer{there_, 0ms};
  Reader reader{here_, 1h};
  writer.leave();
  ASSERT_TRUE(reader.in());
  EXPECT_LT(ttl(hold_key(reader.held->owner())), 2500ms);
  clock_.advance(1s);
  EXPECT_GT(ttl(hold_key(reader.held->owner())), 28s) << "the first renewal";
  clock_.advance(10min);
  EXPECT_TRUE(reader.in());
}

TEST_F(Turns, MoreReadersThanOneScriptLetsInComeOneAfterAnother) {
  Writer writer{there_, 0ms};
  std::list<Reader> readers;
  for (int i = 0; i < 2500; ++i) readers.emplace_back(here_, 1h);
  writer.leave();
  EXPECT_EQ(count_in(readers), 2500);
}

TEST_F(Turns, DeadWriterIsSkipped) {
  Writer writer{there_, 0ms};
  Reader reader{here_, 1h};
  put_dead_writer_first();
  writer.leave();
  EXPECT_TRUE(reader.in());
  put_dead_writer_first();
  EXPECT_TRUE(here_.try_acquire_shared().get()) << "a reader does not wait for it";
}

TEST_F(Turns, WriterThatDiesWhileItWaitsDelaysReadersForTwoSeconds) {
  Reader first{here_, 0ms};
  Writer writer{there_, 1h};
  Reader second{here_, 1h};
  EXPECT_TRUE(second.waits());
  stop(far_);
  store_->run({"DEL", "sluice_rw_write_line:{prices}"}).get();
  put_dead_writer_first();
  clock_.advance(2100ms);
  ASSERT_TRUE(second.in());
  EXPECT_EQ(field("prices", second.held->owner().text), "1") << "in once, and in no queue";
  second.leave();
  first.leave();
  EXPECT_FALSE(exists("prices"));
}

TEST_F(Turns, ProcessThatStandsStillCostsTwoSeconds) {
  test::FaultyStore third{*store_};
  SharedMutex slow{third, "prices"};
  Writer first{there_, 0ms};
  Writer sleeper{slow, 1h};
  Writer second{here_, 1h};
  Reader reader{here_, 1h};
  stop(third);
  first.leave();
  clock_.advance(1400ms);
  EXPECT_TRUE(second.waits());
  clock_.advance(600ms);
  EXPECT_TRUE(second.in());
  go_on(third);
  EXPECT_TRUE(sleeper.waits()) << "its grant is over, and it knows";
  second.leave();
  EXPECT_TRUE(sleeper.in());
  sleeper.leave();
  EXPECT_TRUE(reader.in());
}

// simulation: --primitive shared --seeds 4117
TEST_F(Turns, TheProcessThatIsToLookMayStandStillToo) {
  test::FaultyStore third{*store_};
  test::FaultyStore fourth{*store_};
  SharedMutex slow{third, "prices"};
  SharedMutex slow_too{fourth, "prices"};
  for (const bool readers : {false, true}) {
    Writer first{there_, 0ms};
    Writer sleeper{slow, 1h};
    Writer looks{slow_too, 1h};
    Writer looks_too{slow_too, 1h};
    std::optional<Writer> writer;
    std::optional<Reader> reader;
    if (readers) {
      reader.emplace(here_, 1h);
    } else {
      writer.emplace(here_, 1h);
    }
    stop(third);
    stop(fourth);
    first.leave();
    clock_.advance(4s);
    EXPECT_TRUE(readers ? reader->in() : writer->in()) << "both processes had their turn";
    go_on(third);
    go_on(fourth);
  }
}

TEST_F(Turns, WhoeverWasToLookMayLeave) {
  test::FaultyStore third{*store_};
  SharedMutex slow{third, "prices"};
  Writer first{there_, 0ms};
  Writer sleeper{slow, 1h};
  Writer looks{there_, 1h};
  Writer last{here_, 1h};
  stop(third);
  first.leave();
  looks.give_up();
  clock_.advance(3s);
  EXPECT_TRUE(last.in());
}

TEST_F(Turns, StrangersGetTheirChanceAfterABoundedNumber) {
  std::vector<std::string> heard;
  const auto listener =
      store_
          ->listen("redisson_rwlock:{prices}",
                   [&](const Message& message) { heard.push_back(message.payload); })
          .get();
  SharedMutex mutex{line_, "prices", {.hand_overs = 4}};
  std::list<Writer> writers;
  for (int i = 0; i < 10; ++i) writers.emplace_back(mutex, 1h);
  int handed = 0;
  while (heard.empty() && handed < 100) {
    writers.pop_front();
    ++handed;
  }
  EXPECT_EQ(handed, 5);
  EXPECT_FALSE(exists("prices")) << "free";
  EXPECT_TRUE(writers.front().waits());
  clock_.advance(11ms);
  EXPECT_TRUE(writers.front().in());
}

}  // namespace
}  // namespace sluice
