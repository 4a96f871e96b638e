#include "proxy/flow/session/scan.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/integer.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "proxy/redis/readers.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::uint64_t most_cursor =
    std::numeric_limits<std::uint64_t>::max() >> ScanCursor::place_bits;

/// A server's "[cursor, keys]": the text of the cursor, and the bytes behind it.
struct ScanReply {
  std::string_view cursor, rest;
};

std::optional<ScanReply> read_scan_reply(std::string_view reply) noexcept {
  const auto array = element_at(reply);
  if (array.type != '*' || array.children != 2) return std::nullopt;
  const auto items = reply.substr(array.size);
  const auto cursor = element_at(items);
  if (cursor.type != '$' || cursor.null) return std::nullopt;
  return ScanReply{string_at(items), items.substr(cursor.size)};
}

class ScanRequest final : public SideRequest {
 public:
  ScanRequest(Client& client, const Plan& plan, std::size_t place, std::string bytes)
      : SideRequest(client, plan),
        server_(*client.pool().servers()[place]),
        place_(place),
        servers_(client.pool().servers().size()),
        bytes_(std::move(bytes)) {}

  void begin() { ask(server_, bytes_); }

  void replied(Request& request, std::string_view reply) override {
    drop(request);
    if (reply.starts_with('-')) return give(reply);
    const auto part = read_scan_reply(reply);
    const auto next = part ? next_scan_cursor(place_, part->cursor, servers_) : std::nullopt;
    if (!next) return give("-ERR the server's cursor cannot be passed on\r\n");
    std::string whole;
    whole.reserve(reply.size() + 24);
    resp::append_command_header(whole, 2);
    resp::append_bulk(whole, *next);
    whole += part->rest;
    give(whole);
  }

  void failed(Request& request, Failure failure) override {
    if (may_ask_again(request, failure, server_)) return ask_again(request, server_, bytes_);
    drop(request);
    give(failure);
  }

 private:
  Server& server_;
  std::size_t place_, servers_;
  std::string bytes_;
};

}  // namespace

std::optional<ScanCursor> read_scan_cursor(std::string_view text, std::size_t servers) noexcept {
  const auto value = parse_integer<std::uint64_t>(text);
  if (!value) return std::nullopt;
  const ScanCursor cursor{.place = *value & (ScanCursor::most_servers - 1),
                          .cursor = *value >> ScanCursor::place_bits};
  if (cursor.place >= servers) return std::nullopt;
  return cursor;
}

std::optional<std::string> next_scan_cursor(std::size_t place, std::string_view cursor,
                                            std::size_t servers) {
  const auto value = parse_integer<std::uint64_t>(cursor);
  if (!value || *value > most_cursor) return std::nullopt;
  if (*value == 0 && ++place == servers) return "0";
  return std::to_string(*value << ScanCursor::place_bits | place);
}

void ClientSession::scan(Words words, std::string_view, const Plan& plan) {
  const auto& servers = pool().servers();
  if (servers.size() > ScanCursor::most_servers)
    return answer("-ERR SCAN goes over 4096 servers at most\r\n");
  const auto cursor = read_scan_cursor(words[1], servers.size());
  if (!cursor) return answer("-ERR invalid cursor\r\n");
  // No setting may skip an ejected server: the client would miss its keys without knowing it.
  if (!servers[cursor->place]->health().well()) return client_.answer(Failure::refused);
  const std::string own = std::to_string(cursor->cursor);
  std::vector<std::string_view> asked(words.begin(), words.end());
  asked[1] = own;
  std::string bytes;
  resp::append_command(bytes, asked);
  SideRequest::make<ScanRequest>(client_, plan, cursor->place, std::move(bytes)).begin();
}

}  // namespace sluice::proxy::flow
