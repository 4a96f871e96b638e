/// One connection through the fault proxy, without its sockets: bytes come in on both sides, a
/// judge decides over each whole request, reply and message, and what is to be written comes out.
///
///     client -> from_client() -> requests -> judge -> to_server()
///     client <- to_client()   <- judge <- replies  <- from_server() <- server
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply_parser.hpp"
#include "resp/request_parser.hpp"
#include "sluice/value.hpp"

namespace sluice::test {

/// What is to happen to a request, a reply or a message, or to the whole stream behind it.
enum class LineFault : std::uint8_t {
  none,     ///< It passes.
  cut,      ///< `bytes` of it pass, then the connection is cut on both sides.
  swallow,  ///< It and all that follows in its direction never arrive; the connection stays.
  hold,     ///< It and all that follows in its direction waits for let_go(). If the client leaves
            ///< meanwhile, its requests arrive all the same, late.
  twice,    ///< Of a request: the server gets it twice, the client gets the second reply. Of a
            ///< message: the client gets it twice. A reply passes.
  strand,   ///< Of a request: the client is cut off at once, and the server gets it with let_go():
            ///< a late copy, after what the client sends on a new connection. A reply is held.
  lie,      ///< Of a reply: the client gets `error` in its place. All else passes.
};

struct Fate {
  LineFault fault = LineFault::none;
  std::size_t bytes = 0;
  std::string error{};  ///< without the '-' of the wire
};

/// What the judge sees; good while it judges.
struct Passing {
  enum class Kind : std::uint8_t { request, reply, message };
  Kind kind = Kind::request;
  std::size_t connection = 0;  ///< its number, from 0, in the order of their beginning
  /// Of a request, or of the request that a reply answers; of a message its channel and payload.
  const std::vector<std::string>& words;
  const Value& value;  ///< of a reply or message; else null
};

/// Threads: one at a time.
class ProxiedLine {
 public:
  using Judge = std::function<Fate(const Passing&)>;
  enum class Way : std::uint8_t { to_server, to_client };

  ProxiedLine(std::size_t number, Judge judge) : number_(number), judge_(std::move(judge)) {}

  void from_client(std::string_view bytes);
  /// A server that does not speak RESP is cut off.
  void from_server(std::string_view bytes);
  /// No more bytes come from there. What was held or is under way still goes on.
  void client_ended();
  void server_ended();

  /// What was held goes on.
  void let_go();
  void cut();
  /// Cuts the connection when so many bytes have gone this way since it began.
  void cut_at(Way way, std::uint64_t byte) { lane(way).cut_at = byte; }

  /// To be written; whoever writes erases.
  std::string& out(Way way) { return lane(way).out; }
  /// What goes this way ends with what is in out().
  bool ends(Way way) const { return lane(way).ended && lane(way).queue.empty(); }
  /// Requests of a client that is gone are held.
  bool stranded() const noexcept { return client_gone_ && !requests_.queue.empty(); }
  bool client_gone() const noexcept { return client_gone_; }

 private:
  struct Packet {
    Passing::Kind kind = Passing::Kind::request;
    std::string bytes;
    std::vector<std::string> words;
    Value value;
    bool judged = false;
  };
  struct Lane {
    std::deque<Packet> queue;
    std::string out;
    std::uint64_t passed = 0;
    std::optional<std::uint64_t> cut_at;
    bool held = false;
    bool swallowed = false;
    bool ended = false;
  };
  /// A request that the server has not answered.
  struct Asked {
    std::vector<std::string> words;
    std::size_t replies = 1;
    bool hidden = false;
  };

  Lane& lane(Way way) { return way == Way::to_server ? requests_ : replies_; }
  const Lane& lane(Way way) const { return way == Way::to_server ? requests_ : replies_; }
  void pump(Lane& lane);
  void act(Lane& lane, const Fate& fate);
  void pass(Lane& lane, bool hidden = false);
  void write(Lane& lane, std::string_view bytes);
  void take_value(std::string bytes, Value value);
  bool is_answer(const Value& value, std::string_view first_word) const;

  std::size_t number_;
  Judge judge_;
  Lane requests_;
  Lane replies_;
  bool client_gone_ = false;
  bool subscriber_ = false;  // has subscribed: arrays may be messages

  std::string input_;  // of the client
  resp::RequestParser request_parser_;
  bool raw_ = false;     // the client does not speak RESP: what it says passes as it is
  std::string partial_;  // of a reply
  resp::ReplyParser reply_parser_;
  std::deque<Asked> asked_;
};

}  // namespace sluice::test
