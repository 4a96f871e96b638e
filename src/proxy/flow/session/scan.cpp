#include "proxy/flow/session/scan.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_slot.hpp"
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

constexpr unsigned name_bits = 8;

std::uint64_t tag_of(std::string_view name) noexcept {
  return hash_slot(name) & ((1U << name_bits) - 1);
}

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

/// None: it is no cluster.
std::vector<std::string> nodes_of(const Pool& pool) {
  std::vector<std::string> names;
  if (pool.settings().is_of_cluster())
    for (const auto& server : pool.servers()) names.push_back(server->settings().name);
  return names;
}

class ScanRequest final : public SideRequest {
 public:
  ScanRequest(Client& client, const Plan& plan, std::size_t place, std::string bytes)
      : SideRequest(client, plan),
        server_(*client.pool().servers()[place]),
        place_(place),
        servers_(client.pool().servers().size()),
        nodes_(nodes_of(client.pool())),
        bytes_(std::move(bytes)) {}

  void begin() { ask(server_, bytes_); }

  void replied(Request& request, std::string_view reply) override {
    drop(request);
    if (reply.starts_with('-')) return give(reply);
    const auto part = read_scan_reply(reply);
    const auto next = !part            ? std::nullopt
                      : nodes_.empty() ? next_scan_cursor(place_, part->cursor, servers_)
                                       : next_scan_cursor(place_, part->cursor, nodes_);
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
  std::vector<std::string> nodes_;  // of a cluster
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

std::optional<ScanCursor> read_scan_cursor(std::string_view text,
                                           std::span<const std::string> nodes) noexcept {
  auto cursor = read_scan_cursor(text, nodes.size());
  if (!cursor || *cursor == ScanCursor{}) return cursor;
  const auto tag = cursor->cursor & ((1U << name_bits) - 1);
  cursor->cursor >>= name_bits;
  return tag == tag_of(nodes[cursor->place]) ? cursor : std::nullopt;
}

std::optional<std::string> next_scan_cursor(std::size_t place, std::string_view cursor,
                                            std::span<const std::string> nodes) {
  const auto value = parse_integer<std::uint64_t>(cursor);
  if (!value || *value > most_cursor >> name_bits) return std::nullopt;
  if (*value == 0 && ++place == nodes.size()) return "0";
  return std::to_string((*value << name_bits | tag_of(nodes[place])) << ScanCursor::place_bits |
                        place);
}

void ClientSession::scan(Words words, std::string_view, const Plan& plan) {
  const auto& servers = pool().servers();
  if (servers.size() > ScanCursor::most_servers)
    return answer("-ERR SCAN goes over 4096 servers at most\r\n");
  const auto nodes = nodes_of(pool());
  const auto cursor = nodes.empty() ? read_scan_cursor(words[1], servers.size())
                                    : read_scan_cursor(words[1], nodes);
  if (!cursor)
    return answer(nodes.empty() ? "-ERR invalid cursor\r\n"
                                : "-ERR invalid cursor: it is of a node that is another one now; "
                                  "begin again with 0\r\n");
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
