/// A Store on a bad line: forwards to a real one, and loses, doubles or delays calls as a test
/// says.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::test {

enum class Fault {
  none,
  refused,       ///< never sent: Error, effect none
  request_lost,  ///< sent, not executed; repeated if the call allows it, else effect unknown
  reply_lost,    ///< executed; repeated if the call allows it, else effect unknown
  cut_off,       ///< executed, and whatever the call allows: Error, effect unknown
  doubled,       ///< executed twice, the second reply counts
  request_late,  ///< executed when the test calls let_go()
  reply_late,    ///< executed at once, answered when the test calls let_go()
  stranded,      ///< executed and answered; a copy left behind is executed with let_go()
};

/// Threads: any, but for `plan`, which is set before they start.
class FaultyStore final : public Store {
 public:
  explicit FaultyStore(Store& store) : store_(store) {}

  /// Asked for each call, by the name of the script or command, of a batch that of its first item,
  /// or "listen" (which can be refused, or late). It may do other things on the way.
  std::function<Fault(std::string_view call)> plan = [](std::string_view) { return Fault::none; };

  /// Told of each batch before it is sent.
  std::function<void(const Batch& batch, const CallOptions& options)> on_batch;

  /// From now on messages do not arrive until let_messages_go(), as if this process stood still.
  void hold_messages();
  void let_messages_go();
  /// From now on messages are lost; let_messages_go() does not bring them back.
  void lose_messages();

  /// Lets all late calls go on.
  void let_go();
  /// How often the store was asked to run `call`, copies by `plan` included.
  std::size_t executed(std::string_view call) const;

  using Store::run;
  Task<Value> run(Words command, CallOptions options) override;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override;
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override;
  Task<Listener> listen(std::string channel, MessageHandler handler) override;
  Listener track(std::string prefix, MessageHandler handler) override;
  Listener on_reconnect(std::function<void()> handler) override {
    return store_.on_reconnect(std::move(handler));
  }
  Clock& clock() noexcept override { return store_.clock(); }
  Driver* driver() noexcept override { return store_.driver(); }
  std::string describe() const override { return store_.describe(); }

 private:
  template <class Reply>
  Task<Reply> carry(std::string call, bool repeatable, std::function<Task<Reply>()> send);
  template <class Reply>
  Task<void> send_late(std::string call, std::function<Task<Reply>()> send);
  Task<void> wait_for_let_go();
  void note(const std::string& call);

  MessageHandler by_post(MessageHandler handler);

  /// Messages on their way; outlives the store in its listeners.
  struct Post {
    enum class Way { open, held, lost } way = Way::open;
    std::mutex mutex;
    std::vector<std::pair<MessageHandler, Message>> held;
  };

  Store& store_;
  const std::shared_ptr<Post> post_ = std::make_shared<Post>();
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Completion>> late_;
  std::vector<std::string> executed_;
};

}  // namespace sluice::test
