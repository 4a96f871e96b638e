/// One child process that runs until it ends by itself, a signal is passed on to it, or it has to
/// be ended.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

namespace sluice::cli {

struct ChildResult {
  int exit_code = 0;  ///< the child's own, or 128 + signal
  bool ended_by_us = false;
};

/// Blocks the signals that run_child() reads itself. Call before any thread is started.
void block_child_signals();

/// Runs `command` with this program's input and output. INT, TERM, HUP and QUIT are passed on to
/// it. When `end` asks for it, the child gets TERM, and KILL after `grace`. Throws
/// std::system_error where it cannot be started (ENOENT, EACCES).
/// REQUIRES: block_child_signals() was called; one child at a time.
ChildResult run_child(const std::vector<std::string>& command, std::stop_token end,
                      std::chrono::milliseconds grace);

}  // namespace sluice::cli
