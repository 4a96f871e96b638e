/// Where the library reports what no caller can be told: a lost connection, a dead letter, a cut
/// file.
///
/// Warnings and errors go to stderr until a program sets a sink. Threads: any; the sink is called
/// by the thread that has something to say, often one that others wait for: it must be short, and
/// must not call the library. What it throws is dropped.
#pragma once

#include <string_view>

#include "sluice/standard.hpp"

namespace sluice {

enum class LogLevel { debug, info, warning, error };

using LogSink = std::function<void(LogLevel, std::string_view message)>;

/// Replaces the sink; an empty one silences the library. A call under way in another thread may
/// still use the old one.
void set_log_sink(LogSink sink);

void log(LogLevel level, std::string_view message);

}  // namespace sluice
