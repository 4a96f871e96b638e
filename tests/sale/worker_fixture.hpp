/// A sale on Redis, its database, and workers that live, die and stand still.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sale/shop.hpp"
#include "sale/sql/soci.hpp"
#include "sluice/when_all.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

class SaleWorker : public testing::Test {
 protected:
  void buy_many(int orders, std::int64_t units = 1) {
    std::vector<Task<Admission>> wishes;
    for (int i = 0; i < orders; ++i)
      wishes.push_back(sale_.buy(BuyerId{std::to_string(next_buyer_++)}, RequestId{"r"}, units));
    for (const auto& answer : when_all(std::move(wishes)).get())
      ASSERT_EQ(answer.outcome, SaleOutcome::admitted);
  }

  static OrderWorkerOptions quick() {
    return {.batch = 1000,
            .idle_wait = 20ms,
            .claim_after = 100ms,
            .first_pause = 5ms,
            .longest_pause = 20ms};
  }

  std::int64_t waiting() { return sale_.status().get().waiting; }

  template <class Condition>
  static void wait_until(Condition&& condition) {
    const auto patience = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience);
      std::this_thread::yield();
    }
  }

  /// Takes entries as a worker that dies then: new ones, or those of the dead worker before it.
  Value::Items read_as_dead_worker(int count, int generation = 0) {
    const auto consumer = "dead " + std::to_string(generation);
    const auto most = std::to_string(count);
    if (generation > 0)
      return store_->run({"XAUTOCLAIM", stream_, "workers", consumer, "0", "0", "COUNT", most})
          .get()
          .as_items()
          .at(1)
          .as_items();
    const auto reply = store_
                           ->run({"XREADGROUP", "GROUP", "workers", consumer, "COUNT", most,
                                  "STREAMS", stream_, ">"})
                           .get();
    if (reply.is_null()) return {};  // a worker that lives was quicker
    return reply.type() == Value::Type::map ? reply.as_items().at(1).as_items()
                                            : reply.as_items().at(0).as_items().at(1).as_items();
  }

  Sale create() {
    store_->run({"DEL", "sluice:sales:types"}).get();  // each test of the server uses the same one
    return Sale::create(*store_, {.name = name_, .stock = 9'999, .number_type = "MT"}).get();
  }

  std::string name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string stream_ = "{" + name_ + "}:orders";
  std::unique_ptr<Store> store_ = open(test::shared_server().url());
  Sale sale_ = create();
  test::TempDir folder_;
  std::string url_ = test::database_url(folder_);
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_, {.answer = 1s});
  int next_buyer_ = 0;
};

}  // namespace sluice::test
