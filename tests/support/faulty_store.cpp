#include "support/faulty_store.hpp"

#include <algorithm>

namespace sluice::test {
namespace {

[[noreturn]] void lose(const std::string& call) {
  throw Error{Errc::connection, "the test lost " + call, Effect::unknown};
}

}  // namespace

void FaultyStore::let_go() {
  std::vector<std::shared_ptr<Completion>> late;
  {
    const std::lock_guard lock{mutex_};
    late.swap(late_);
  }
  for (const auto& call : late) call->complete();
}

void FaultyStore::hold_messages() {
  const std::lock_guard lock{post_->mutex};
  post_->way = Post::Way::held;
}

void FaultyStore::lose_messages() {
  const std::lock_guard lock{post_->mutex};
  post_->way = Post::Way::lost;
}

void FaultyStore::let_messages_go() {
  std::vector<std::pair<MessageHandler, Message>> held;
  {
    const std::lock_guard lock{post_->mutex};
    post_->way = Post::Way::open;
    held.swap(post_->held);
  }
  for (const auto& [handler, message] : held) handler(message);
}

std::size_t FaultyStore::executed(std::string_view call) const {
  const std::lock_guard lock{mutex_};
  return static_cast<std::size_t>(std::ranges::count(executed_, call));
}

void FaultyStore::note(const std::string& call) {
  const std::lock_guard lock{mutex_};
  executed_.push_back(call);
}

Task<void> FaultyStore::wait_for_let_go() {
  const auto gate = std::make_shared<Completion>(store_.driver());
  {
    const std::lock_guard lock{mutex_};
    late_.push_back(gate);
  }
  Completion& opened = *gate;
  co_await opened;
}

template <class Reply>
Task<void> FaultyStore::send_late(std::string call, std::function<Task<Reply>()> send) {
  auto late = wait_for_let_go();
  co_await late;
  note(call);
  auto sent = send();
  co_await sent;
}

template <class Reply>
Task<Reply> FaultyStore::carry(std::string call, bool repeatable,
                               std::function<Task<Reply>()> send) {
  const Fault fault = plan(call);
  if (fault == Fault::refused)
    throw Error{Errc::connection, "the test refused " + call, Effect::none};
  if (fault == Fault::request_lost && !repeatable) lose(call);
  if (fault == Fault::request_late) {
    auto late = wait_for_let_go();
    co_await late;
  }
  note(call);
  auto sent = send();
  Reply reply = co_await sent;
  if (fault == Fault::cut_off || (fault == Fault::reply_lost && !repeatable)) lose(call);
  if (fault == Fault::doubled || fault == Fault::reply_lost) {
    note(call);
    auto again = send();
    reply = co_await again;
  }
  if (fault == Fault::stranded) spawn(send_late<Reply>(call, send));
  if (fault == Fault::reply_late) {
    auto late = wait_for_let_go();
    co_await late;
  }
  co_return reply;
}

Task<Value> FaultyStore::run(Words command, CallOptions options) {
  return carry<Value>(
      std::string{command.front()}, options.repeatable,
      [this, options, words = std::vector<std::string>(command.begin(), command.end())] {
        const std::vector<std::string_view> views(words.begin(), words.end());
        return store_.run(Words{views}, options);
      });
}

Task<Value> FaultyStore::run(const Script& script, Words keys, Words args, CallOptions options) {
  return carry<Value>(
      std::string{script.name}, options.repeatable,
      [this, &script, options, own_keys = std::vector<std::string>(keys.begin(), keys.end()),
       own_args = std::vector<std::string>(args.begin(), args.end())] {
        const std::vector<std::string_view> key_views(own_keys.begin(), own_keys.end());
        const std::vector<std::string_view> arg_views(own_args.begin(), own_args.end());
        return store_.run(script, Words{key_views}, Words{arg_views}, options);
      });
}

Task<std::vector<Value>> FaultyStore::run(Batch batch, CallOptions options) {
  if (on_batch) on_batch(batch, options);
  const auto& first = batch.items().front();
  return carry<std::vector<Value>>(
      first.script ? std::string{first.script->name} : first.words.front(), options.repeatable,
      [this, options, batch] { return store_.run(batch, options); });
}

Task<Listener> FaultyStore::listen(std::string channel, MessageHandler handler) {
  const Fault fault = plan("listen");
  if (fault == Fault::refused)
    throw Error{Errc::connection, "the test refused listen", Effect::none};
  if (fault == Fault::request_late) {
    auto late = wait_for_let_go();
    co_await late;
  }
  auto listening = store_.listen(std::move(channel), by_post(std::move(handler)));
  co_return co_await listening;
}

Listener FaultyStore::track(std::string prefix, MessageHandler handler) {
  return store_.track(std::move(prefix), by_post(std::move(handler)));
}

MessageHandler FaultyStore::by_post(MessageHandler handler) {
  return [post = post_, handler = std::move(handler)](const Message& message) {
    {
      const std::lock_guard lock{post->mutex};
      if (post->way == Post::Way::lost) return;
      if (post->way == Post::Way::held) {
        post->held.emplace_back(handler, message);
        return;
      }
    }
    handler(message);
  };
}

}  // namespace sluice::test
