/// A coroutine of another library, which its owner may destroy at any time.
#pragma once

#include <coroutine>
#include <exception>

namespace sluice::test {

struct Foreign {
  struct promise_type {
    Foreign get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() { failure = std::current_exception(); }
    std::exception_ptr failure;
  };
  std::coroutine_handle<promise_type> coroutine;
};

}  // namespace sluice::test
