/// One child process: runs until it ends by itself, or until it has to be ended.
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

/// Blocks the signals that run_child() reads itself, and prepares the streams: a message that
/// nobody reads must not end the holder of a lock. Call before any thread is started.
void prepare_signals();

/// Runs `command` with this program's input and output. INT, TERM, HUP, QUIT, USR1 and USR2 are
/// passed on to it. When `end` asks for it, the child gets TERM, and KILL after `grace`. When this
/// process dies, whatever kills it, the kernel kills the child (PR_SET_PDEATHSIG); processes that
/// the child has started are the child's concern.
/// Throws std::system_error where it cannot be started (ENOENT, EACCES).
/// REQUIRES: prepare_signals() was called; one child at a time; the calling thread lives as long as
/// the process.
ChildResult run_child(const std::vector<std::string>& command, std::stop_token end,
                      std::chrono::milliseconds grace);

}  // namespace sluice::cli
