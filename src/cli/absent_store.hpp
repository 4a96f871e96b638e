/// A store that could not be opened: one node of several, of which a majority is enough.
#pragma once

#include "sluice/store.hpp"

namespace sluice::cli {

/// Every call throws what opening it threw.
class AbsentStore final : public Store {
 public:
  AbsentStore(std::string url, Error why) : url_(std::move(url)), why_(std::move(why)) {}

  using Store::run;
  Task<Value> run(Words, CallOptions) override { return refuse<Value>(why_); }
  Task<Value> run(const Script&, Words, Words, CallOptions) override { return refuse<Value>(why_); }
  Task<std::vector<Value>> run(Batch, CallOptions) override {
    return refuse<std::vector<Value>>(why_);
  }
  Task<Listener> listen(std::string, MessageHandler) override { return refuse<Listener>(why_); }
  Clock& clock() noexcept override { return system_clock(); }
  Driver* driver() noexcept override { return nullptr; }
  std::string describe() const override { return url_; }

 private:
  template <class Reply>
  static Task<Reply> refuse(Error why) {
    throw why;
    co_return Reply{};
  }

  const std::string url_;
  const Error why_;
};

}  // namespace sluice::cli
