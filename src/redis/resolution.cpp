#include "redis/resolution.hpp"

#include <thread>

#include "base/thread.hpp"

namespace sluice::redis {

std::shared_ptr<Resolution> Resolution::start(net::Endpoint endpoint, std::function<void()> done) {
  auto asked = std::make_shared<Resolution>();
  start_thread([asked, endpoint = std::move(endpoint), done = std::move(done)] {
    std::optional<Answer> answer;
    try {
      answer.emplace(net::resolve(endpoint));
    } catch (const Error& failure) {
      answer.emplace(Unexpected{failure});
    } catch (const std::exception& failure) {
      answer.emplace(Unexpected{Error{Errc::connection, failure.what()}});
    }
    {
      const std::lock_guard lock{asked->mutex_};
      asked->answer_ = std::move(answer);
    }
    done();
  }).detach();
  return asked;
}

}  // namespace sluice::redis
