/// Ways to serve an engine's clients by several threads, each in its shortest form, with the same
/// engine, parser and sockets.
#pragma once

#include <cstddef>

#include "engine/embedded/locked_engine.hpp"
#include "net/server_socket.hpp"

namespace sluice::bench {

/// None of them returns. The first of the `threads` is the caller's.
using Way = void(engine::LockedEngine& engine, net::ServerSocket& listener, std::size_t threads);

/// As the port does it: a client belongs to one thread, which reads, executes under the engine's
/// lock, and writes.
Way serve_owned;
/// As Redis 6 does it: the threads read and parse at once, then the first of them executes alone,
/// then all write at once.
Way serve_by_barrier;
/// A client belongs to one thread, which reads, parses and writes; one thread more executes what
/// all of them have parsed.
Way serve_by_executor;

}  // namespace sluice::bench
