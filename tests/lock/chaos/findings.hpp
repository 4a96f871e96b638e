/// Checks what journals say against what docs/lock.md promises.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lock/chaos/journal.hpp"

namespace sluice::chaos {

/// What was done to the processes and the server.
struct Trouble {
  enum class Kind : std::uint8_t {
    process,    ///< stopped for that time, or killed
    server,     ///< not there, or without memory: nobody can get in
    promotion,  ///< the server lost what the replica does not have
    snapshot,   ///< the server lost what its file does not have, or all
    node,       ///< one of the servers of a QuorumLock is not there
  };
  Kind kind = Kind::server;
  std::string text;
  Stamp begin{};
  Stamp end{};
  std::uint64_t end_us = 0;  ///< the same in microseconds of the wall clock, as tokens are
  std::string who{};         ///< the process: "3.1"
};

/// A primitive, as its users have agreed on it.
struct Terms {
  std::uint64_t permits = 0;  ///< of a semaphore
  std::uint64_t most = 0;     ///< that one hold takes
  bool durable = false;       ///< all its users demand one replica
  bool fair = false;          ///< first come, first served
  bool apart = false;         ///< a QuorumLock: on servers of its own, which lose nothing
  std::uint64_t rate = 0;     ///< of a limiter, in a second
  std::uint64_t count = 0;    ///< that a latch is set to
  bool numbers = false;       ///< each call gets one of its own, and a later call a larger one
  bool orders = false;        ///< of a Sale

  bool is_lock() const noexcept { return permits + rate + count == 0 && !numbers && !orders; }
};

struct Rules {
  std::map<std::string, Terms> names;
  Stamp lease{};
  /// How long a lock may be free beside a waiter while all are well. Zero: not checked.
  Stamp patience{};
  /// How long a wait may take in all. Zero: not checked.
  Stamp longest{};
  /// After so long one that asked for a fair lock stands in its queue. Zero: not checked.
  Stamp queued{};
};

struct Finding {
  std::string name;  ///< of the lock
  std::string text;
  Stamp at{};
  bool is_explained = false;  ///< nothing else was promised: by what the servers have lost
};

/// - Two holds that exclude each other are never valid at once, and permits never more than there
///   are. Not asked of holds that were granted before the server lost data, up to a lease after the
///   loss; a promotion is a loss only where no replica was demanded.
/// - No token is given twice, and a hold that was asked for after another was in has a larger one;
///   the same exception. A reader's token is not below that of a writer before it.
/// - A lock is not free for long beside a waiter: `patience`, two seconds and a lease more for each
///   process that was not well, and what the server was away.
///
/// - Nobody who asked for a fair lock when another one stood in its queue for long is in before it,
///   while that one's process and the server are well.
/// - A limiter grants no more than its rate in any second; a latch is open for nobody before so
///   many could have counted, and for each that waited when they had.
/// - No number is given twice, and one that was asked for after another was given is larger.
///   Numbers that a loss explains are told as such; a promotion is a loss only where no replica was
///   demanded.
///
/// What ended before `since` is not looked at.
std::vector<Finding> check(const std::vector<Section>& sections,
                           const std::vector<Trouble>& troubles, const Rules& rules,
                           Stamp since = {});

/// The part of a history that shows a finding: a line for each section of that lock and each
/// trouble around it.
std::string extract(const std::vector<Section>& sections, const std::vector<Trouble>& troubles,
                    const Finding& finding);

}  // namespace sluice::chaos
