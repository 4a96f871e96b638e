/// Answers of tools that ask the store once.
#pragma once

#include <optional>
#include <utility>

#include "http/responder.hpp"
#include "server/tools_door.hpp"
#include "sluice/error.hpp"
#include "sluice/task.hpp"

namespace sluice::server {

inline Task<void> send_when_done(Task<http::Response> work, http::Responder respond) {
  http::Response response;
  try {
    response = co_await work;
  } catch (const std::exception& failure) {
    response = tool_problem_of(failure);
  }
  respond.send(std::move(response));
}

/// Answers with what the Task of `begin()` returns, or with why it, or the beginning, failed.
template <class Begin>
void answer_call(http::Responder&& respond, Begin begin) {
  std::optional<Task<http::Response>> work;
  try {
    work = begin();
  } catch (const Error& failure) {
    return respond.send(tool_problem_of(failure));
  }
  spawn(send_when_done(std::move(*work), std::move(respond)));
}

}  // namespace sluice::server
