/// What the flow of requests needs of a protocol, Redis or memcached: where a request and a reply
/// end, how a request is served, how it is cut in fragments and how their replies become one. All
/// of it is pure: no socket, no clock, no server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "resp/letters.hpp"

namespace sluice::front {
class Rights;
}

namespace sluice::proxy {

using front::Rights;

using Words = std::span<const std::string_view>;

/// The first line of an HTTP request, and those by which Redis, too, knows it. No command is so.
inline bool is_http(Words words) noexcept {
  return resp::is_word(words[0], "post") || resp::is_word(words[0], "host:") ||
         (words.size() == 3 && words[2].starts_with("HTTP/"));
}

/// Finds the requests in what a client sends. `buffer` begins with the first byte of the request in
/// hand and holds at least what it held at the last call; bytes seen before are not read again.
class RequestReader {
 public:
  enum class State : std::uint8_t { incomplete, complete, bad };
  virtual ~RequestReader() = default;

  virtual State read(std::string_view buffer) = 0;
  /// Of a complete request; good until the buffer changes or read() is called. Empty: to be
  /// ignored.
  virtual Words words() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  /// The complete request at the front of `buffer` as servers get it: so that they read the words
  /// that were read here, and no others. Its own bytes where they are in that form already; good as
  /// long as words().
  virtual std::string_view wire(std::string_view buffer) = 0;
  virtual std::size_t missing() const noexcept = 0;
  /// The next requests are of a client that has not logged in: Redis's smaller limits hold.
  virtual void distrust() noexcept {}
  /// Bytes that it keeps beside the buffer.
  virtual std::size_t memory() const noexcept { return 0; }
  /// Of a bad request: the last reply to the client ("-ERR Protocol error: ...\r\n"), behind the
  /// replies that it still waits for. Empty (strict): the client is closed at once, without them.
  virtual std::string error_reply() const = 0;
};

/// Finds the replies in what a server sends; the same contract. A push (RESP3) is a reply with
/// is_push().
class ReplyReader {
 public:
  using State = RequestReader::State;
  virtual ~ReplyReader() = default;

  virtual State read(std::string_view buffer) = 0;
  virtual std::size_t size() const noexcept = 0;
  virtual std::size_t missing() const noexcept = 0;
  virtual bool is_push() const noexcept { return false; }
  /// Of a bad one: it may well be a reply, but is longer than reply_size_limit.
  virtual bool is_too_long() const noexcept { return false; }
};

/// How a request is served.
enum class Route : std::uint8_t {
  one,      ///< by the server of its keys; refused if their homes differ (strict: first key's home)
  homes,    ///< fragmented: each home gets one request for its keys, and the replies are merged
  every,    ///< by every server of the pool, and the replies are merged
  any,      ///< by the server of the key "placeholder"
  local,    ///< `reply` is the answer
  session,  ///< it changes or uses the state of the connection: see SessionVerb
  refused,  ///< `reply` is the error
  close,    ///< `reply` (may be empty) is the last one; pending ones first unless `drop_pending`
};

/// What a request of Route::session wants.
enum class SessionVerb : std::uint8_t {
  none,
  auth,
  hello,
  select,
  client,
  reset,
  multi,
  exec,
  discard,
  watch,
  unwatch,
  blocking,  ///< waits on the server: wants a connection of its own; keys as with Route::one
  subscribe,
  unsubscribe,
  psubscribe,
  punsubscribe,
  ssubscribe,
  sunsubscribe,
  script_load,
  script_flush,  ///< at every server, and the proxy forgets the scripts that it knows
  evalsha,
  scan,
};

/// How the replies of fragments become one.
enum class Merge : std::uint8_t {
  none,
  by_key,  ///< elements of arrays in the order of the keys (MGET); memcached: VALUE blocks, one END
  sum,     ///< integers
  all_ok,  ///< +OK, or the first error
  first,   ///< all should be equal: the first, or the first error
  concatenate,   ///< arrays after one another (KEYS)
  all_elements,  ///< arrays of 0 and 1: the minimum at each place (SCRIPT EXISTS)
  found,         ///< the first that is not null (RANDOMKEY)
};

/// Which replies the client has asked not to get (a quiet flag). Servers give them all the same,
/// since their order tells which request they answer; Protocol::is_silent() says which to drop.
/// `all`: CLIENT REPLY, without asking the protocol.
enum class Quiet : std::uint8_t { no, hit, miss, all };

/// Plan::keys of commands whose first argument is their key.
inline constexpr std::size_t first_argument[] = {1};

struct Plan {
  Route route = Route::refused;
  SessionVerb verb = SessionVerb::none;
  Merge merge = Merge::none;
  bool read_only = false;     ///< may be asked again when its fate is unknown
  bool expects_reply = true;  ///< false: noreply; the server does not answer
  bool drop_pending = false;  ///< of `close`
  bool is_wish = false;       ///< of `close`: the client has asked for it
  Quiet quiet = Quiet::no;
  std::uint8_t words_per_key = 1;     ///< of `homes`: 2 in MSET
  std::uint8_t items_per_key = 1;     ///< of Merge::by_key, in a reply: 2 in PUBSUB NUMSUB
  std::uint16_t command = 0;          ///< for statistics: Protocol::command_name(command)
  std::span<const std::size_t> keys;  ///< positions in words; good until the next plan()
  /// Not empty: the key by which the home is found, where the word is encoded (base64). Good until
  /// the next plan().
  std::string_view routing_key;
  /// Of local, refused and close; may be empty: the client wants no reply. Good until the next
  /// plan().
  std::string_view reply;
  /// What servers get instead of the client's bytes; empty: those. Good until the next plan().
  std::string_view forward;
};

/// Why a request has no answer of a server.
enum class Failure : std::uint8_t {
  refused,     ///< "Connection refused", also: all servers are ejected
  timed_out,   ///< "Connection timed out"
  reset,       ///< "Connection reset by peer"
  host_down,   ///< "Host is down": no such name
  invalid,     ///< "Invalid argument"
  closed,      ///< the server ended the connection: "unknown"
  crossed,     ///< the keys have different homes (twemproxy does not refuse this)
  overloaded,  ///< a limit of the proxy
  too_long,    ///< the server's reply is beyond reply_size_limit
  limited,     ///< its user or address has sent too many requests
};

/// What a request is to a mirror of its pool.
struct Effect {
  enum class Kind : std::uint8_t {
    none,
    read,
    write,
    single,  ///< a write that cannot be said again to another server
  };
  Kind kind = Kind::none;
  /// Servers with the same data answer with the same bytes; false: chance, time or order may
  /// differ.
  bool alike = true;
};

/// One fragment's reply and what it was asked for.
struct FragmentReply {
  std::string_view reply;
  std::span<const std::uint32_t> keys;  ///< places of its keys among the keys of the whole request
  bool failed = false;                  ///< `reply` is an error of the proxy's own
};

/// Made from the settings of a pool. Threads: one (scratch space is kept between calls).
class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual std::unique_ptr<RequestReader> request_reader() const = 0;
  virtual std::unique_ptr<ReplyReader> reply_reader() const = 0;

  /// The hot path: no allocation for a command with few keys.
  virtual Plan plan(Words words) = 0;

  /// The request for one home: `keys` are places among plan.keys.
  virtual void append_fragment(std::string& out, Words words, const Plan& plan,
                               std::span<const std::uint32_t> keys) const = 0;
  /// The one reply made of all, in the order in which fragments were made. `partial`: the keys of a
  /// failed fragment get an error each, as elements of the reply, instead of one error for all.
  virtual void append_merged(std::string& out, Words words, const Plan& plan,
                             std::span<const FragmentReply> replies, bool partial) const = 0;

  virtual void append_failure(std::string& out, Failure failure) const = 0;
  std::string reply_for(Failure failure) const {
    std::string reply;
    append_failure(reply, failure);
    return reply;
  }
  /// Whether the reply is the proxy's own, because it has none of a server.
  bool is_failure(std::string_view reply) const {
    for (auto place = 0; place <= static_cast<int>(Failure::limited); ++place)
      if (reply == reply_for(static_cast<Failure>(place))) return true;
    return false;
  }
  virtual Effect effect_of(const Plan& plan, Words words) const = 0;
  /// The client gets nothing for this reply.
  virtual bool is_silent(Quiet quiet, std::string_view reply) const noexcept = 0;

  /// An error of a server after which twemproxy closes the server's connection (-OOM, -BUSY,
  /// -LOADING).
  virtual bool is_server_trouble(std::string_view reply) const noexcept = 0;

  /// Whether a server that answers the handshake (AUTH, SELECT, HELLO) so can be used.
  virtual bool is_welcome(std::string_view reply) const noexcept { return !reply.starts_with('-'); }

  /// Gives back what a long request has needed; once a second, between two requests.
  virtual void trim() noexcept {}

  /// What is asked to learn whether a server is well, and whether the reply says so.
  virtual std::string_view health_question() const noexcept = 0;
  virtual bool is_healthy(std::string_view reply) const noexcept = 0;

  /// Of a user with the setting `acl`; lives as long as the protocol. Null: the user has none.
  virtual Rights* rights_of(std::string_view) noexcept { return nullptr; }

  virtual std::string_view command_name(std::uint16_t command) const noexcept = 0;
  virtual std::size_t command_count() const noexcept = 0;
};

struct PoolSettings;

/// twemproxy's -m: with Compat::strict a key that does not fit in one of its buffers closes the
/// client.
inline constexpr std::size_t default_mbuf_size = 16384;

std::unique_ptr<Protocol> make_redis_protocol(const PoolSettings& settings,
                                              std::size_t mbuf_size = default_mbuf_size);
/// `mbuf_size` changes nothing here: the keys of memcached always fit.
std::unique_ptr<Protocol> make_memcached_protocol(const PoolSettings& settings,
                                                  std::size_t mbuf_size = default_mbuf_size);

}  // namespace sluice::proxy
