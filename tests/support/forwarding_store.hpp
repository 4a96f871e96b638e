/// A Store that hands on what it is asked; a test overrides what goes wrong on the way.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::test {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& store) : store_(store) {}

  using Store::run;
  Task<Value> run(Words command, CallOptions options) override {
    return store_.run(command, options);
  }
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    return store_.run(script, keys, args, options);
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    return store_.run(std::move(batch), options);
  }
  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    return store_.listen(std::move(channel), std::move(handler));
  }
  Clock& clock() noexcept override { return store_.clock(); }
  Driver* driver() noexcept override { return store_.driver(); }
  std::string describe() const override { return store_.describe(); }

 protected:
  Store& store_;
};

/// A ForwardingStore that hands on also what is told: messages, connections, changes of keys.
class WatchedStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Task<Listener> subscribe(std::string channel, MessageHandler handler) override {
    return store_.subscribe(std::move(channel), std::move(handler));
  }
  Listener on_reconnect(std::function<void()> handler) override {
    return store_.on_reconnect(std::move(handler));
  }
  Listener watch_connection(std::function<void()> handler) override {
    return store_.watch_connection(std::move(handler));
  }
  Listener track(std::string prefix, MessageHandler handler) override {
    return store_.track(std::move(prefix), std::move(handler));
  }
  void call_back(std::function<void()> callback) noexcept override {
    store_.call_back(std::move(callback));
  }
};

}  // namespace sluice::test
