/// Commands and scripts as the bytes that go to the server, encoded once, when the call is made.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/keyed_hash.hpp"
#include "sluice/store.hpp"

namespace sluice::redis {

/// The scripts that a connection has been taught, by SHA-1.
class KnownScripts {
 public:
  bool has(std::string_view sha1) const { return sha1s_.find(sha1) != sha1s_.end(); }
  void add(std::string_view sha1) { sha1s_.emplace(sha1); }
  void forget(std::string_view sha1) {
    if (const auto found = sha1s_.find(sha1); found != sha1s_.end()) sha1s_.erase(found);
  }
  void clear() { sha1s_.clear(); }

 private:
  std::unordered_set<std::string, KeyedHash, std::equal_to<>> sha1s_;
};

/// One command or script, or several to be sent together.
///
/// A script is kept as its EVALSHA; append_to() writes the EVAL with the text instead where the
/// connection does not know the script yet. So the first use costs no second round trip, and keeps
/// its place in the order. A batch brings each of its scripts along once: a server that has
/// forgotten it would else run the rest of the batch before it.
class Request {
 public:
  enum class Kind { call, batch };

  explicit Request(Kind kind = Kind::call) noexcept : kind_(kind) {}

  /// Throws Error{bad_argument} for no words, or a word that no server takes (512 MiB).
  void add(Words command);
  void add(const Script& script, Words keys, Words args);

  std::size_t commands() const noexcept { return commands_; }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool has_script() const noexcept { return !scripts_.empty(); }
  /// The script is a program's own, be it by EVAL: its words need not be those of the server.
  bool runs_foreign_script() const noexcept { return runs_foreign_script_; }
  /// Every command only reads, so that running it twice does no harm.
  bool only_reads() const noexcept { return only_reads_; }

  void append_to(std::string& out, KnownScripts& known) const;
  /// SCRIPT LOAD of each script that the connection does not know. How many there are.
  std::size_t append_lessons(std::string& out, const KnownScripts& known) const;

  /// The Error of an error reply to a request of one command or script.
  Error error_of(std::string_view reply) const;
  /// Its nth command or script, as messages call it.
  std::string name(std::size_t nth) const;

  /// The push that answers in place of a reply, as for SUBSCRIBE; empty: an ordinary reply.
  std::string_view answered_by() const noexcept { return answered_by_; }
  void set_answered_by(std::string_view push) noexcept { answered_by_ = push; }
  /// The reply to a PING at its end answers the whole: the command before it is answered by pushes
  /// that also come unasked, or by an error (SUNSUBSCRIBE).
  static constexpr std::string_view answered_by_ping = "PONG";

  /// ASKING, and this request of one command; a script with its text, since the server forgets
  /// ASKING after NOSCRIPT.
  Request asking() const;

 private:
  struct Call {
    std::size_t begins;  ///< of the EVALSHA in bytes_
    std::size_t tail;    ///< what EVAL and EVALSHA share: number of keys, keys, arguments
    std::size_t words;
    Script script;
    bool is_first;  ///< of this script in the request
  };

  Kind kind_;
  std::string bytes_;
  std::vector<Call> scripts_;
  std::vector<std::string_view> sha1s_;  // of a batch's scripts, each once
  std::size_t commands_ = 0;
  bool only_reads_ = true;
  bool runs_foreign_script_ = false;
  std::string_view answered_by_;
};

/// What a plain command needs of its connection.
struct Needs {
  bool own_connection = false;              ///< it may block
  std::chrono::milliseconds blocks_for{0};  ///< at most; max(): for ever
};

/// Throws Error{bad_argument} for a command that changes the state of the shared connection
/// (SELECT, MULTI, SUBSCRIBE).
Needs needs_of(Words command);

}  // namespace sluice::redis
