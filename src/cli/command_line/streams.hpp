/// The three standard streams of a program, which the caller may have closed, filled or left: what
/// happens to them is no exception in the midst of something else.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace sluice::cli {

/// Opens the descriptors 0 to 2 that the caller closed, so that they are given to nothing else (a
/// log, a socket): what is written there fails as it should. And a reader that has gone, or a file
/// at its limit, is a failed write and no signal. Call it first in main(). Ends the program where
/// it cannot.
void prepare_streams() noexcept;
/// For a process that becomes another program: signals are as the caller had them. May be called
/// between fork() and exec().
void restore_signals() noexcept;

/// Writes to stdout, through its buffer. What cannot be written is dropped, and never thrown.
void put_text(std::string_view text) noexcept;
template <class... Args>
void put(fmt::format_string<Args...> form, Args&&... args) {
  put_text(fmt::format(form, std::forward<Args>(args)...));
}
/// Empties the buffer of stdout. False: something was dropped, now or before.
bool flush_output() noexcept;
/// Whether stdout is open for writing; that a disk is full shows only when something is written.
bool can_write_output() noexcept;

/// The code to end with: what was written may still lie in the buffer, and a full disk shows only
/// now.
int with_output_written(int code) noexcept;

}  // namespace sluice::cli
