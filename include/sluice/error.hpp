/// What went wrong, and whether the effect may have happened all the same.
///
/// A refusal ("held by another", "sold out") is a value in the return type of a verb; a failure is
/// an Error. No memory in a call is std::bad_alloc or an Error; no memory in one of the library's
/// own threads ends the program (std::terminate).
#pragma once

#include <string>
#include <system_error>

namespace sluice {

/// Whether the command behind a failed call took effect.
enum class Effect {
  none,     ///< It did not; asking again is safe.
  done,     ///< It did; only what came after it failed.
  unknown,  ///< It may have: the request was sent, and no reply came.
};

enum class Errc {
  bad_argument = 1,  ///< The caller's mistake: an empty name, a number out of range, a malformed
                     ///< URL, blocking on a thread that must not block.
  connection,        ///< The server cannot be reached, or the connection broke.
  timeout,           ///< No reply within the command's time.
  authentication,    ///< Wrong user, password or certificate; a command that the user may not run.
  wrong_type,        ///< The key holds another kind of value.
  script,            ///< A script raised an error.
  server,            ///< Any other error reply.
  protocol,          ///< Bytes that are not RESP, or a reply of another kind or size than any.
  read_only,         ///< The server, the engine or the database takes no writes now.
  out_of_space,     ///< Disk or memory is full, the disk of an open engine refuses to write, or the
                    ///< process may have no more descriptors or threads; nothing was acknowledged.
  corrupt,          ///< Damaged data.
  in_use,           ///< Another process has it: the folder of an engine, a socket.
  config_mismatch,  ///< Another program defined the same name otherwise.
  closed,           ///< The Store or object is closed.
  database,         ///< The SQL database failed.
  unsynced,         ///< Fewer replicas than asked for have it; a grant was taken back.
  overloaded,  ///< Refused in this process: more at a time would be too much for what is behind.
};

const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::string_view to_string(Effect effect) noexcept;

/// Thrown by `Task::get()` and `co_await`. `what()` is one line that says what, where, and what to
/// do.
class Error : public std::system_error {
 public:
  Error(Errc code, const std::string& message, Effect effect = Effect::none)
      : std::system_error(make_error_code(code), message), effect_(effect), message_(message) {}

  Errc errc() const noexcept { return static_cast<Errc>(code().value()); }
  Effect effect() const noexcept { return effect_; }
  /// The sentence without the category that what() appends.
  const std::string& message() const noexcept { return message_; }

 private:
  Effect effect_;
  std::string message_;
};

}  // namespace sluice

template <>
struct std::is_error_code_enum<sluice::Errc> : std::true_type {};
