#include "proxy/flow/session/scan.hpp"

#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/integer.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/flow/session/side_request.hpp"
#include "proxy/hash/hash.hpp"
#include "proxy/redis/readers.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr unsigned own_bits = 20;
constexpr std::uint64_t most_cursor = std::numeric_limits<std::uint64_t>::max() >> own_bits;

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

/// In a cluster a node's name is its address; elsewhere a name may get another address.
ScanList list_of(const Pool& pool, int db) {
  auto what = std::to_string(db);
  for (const auto& server : pool.servers())
    what += '\n' + server->settings().name + ' ' + net::to_string(server->settings().endpoint);
  return {pool.servers().size(), what};
}

class ScanRequest final : public SideRequest {
 public:
  ScanRequest(Client& client, const Plan& plan, const ScanList& list, std::size_t place,
              std::string bytes)
      : SideRequest(client, plan),
        server_(*client.pool().servers()[place]),
        place_(place),
        list_(list),
        bytes_(std::move(bytes)) {}

  void begin() { ask(server_, bytes_); }

  void replied(Request& request, std::string_view reply) override {
    drop(request);
    if (reply.starts_with('-')) return give(reply);
    const auto part = read_scan_reply(reply);
    const auto next = part ? list_.next(place_, part->cursor) : std::nullopt;
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
  std::size_t place_;
  ScanList list_;
  std::string bytes_;
};

}  // namespace

ScanList::ScanList(std::size_t servers, std::string_view what) noexcept
    : servers_(servers),
      place_bits_(static_cast<unsigned>(std::bit_width(servers - 1))),
      tag_(hash_function(Hash::fnv1a_32)(what) & ((1U << (own_bits - place_bits_)) - 1)) {}

std::optional<ScanCursor> ScanList::read(std::string_view text) const noexcept {
  const auto value = parse_integer<std::uint64_t>(text);
  if (!value) return std::nullopt;
  if (*value == 0) return ScanCursor{};
  const auto own = *value & ((1U << own_bits) - 1);
  const ScanCursor cursor{.place = own & ((1U << place_bits_) - 1), .cursor = *value >> own_bits};
  if (cursor.place >= servers_ || own >> place_bits_ != tag_) return std::nullopt;
  return cursor;
}

std::optional<std::string> ScanList::next(std::size_t place, std::string_view cursor) const {
  const auto value = parse_integer<std::uint64_t>(cursor);
  if (!value || *value > most_cursor) return std::nullopt;
  if (*value == 0 && ++place == servers_) return "0";
  return std::to_string(*value << own_bits | tag_ << place_bits_ | place);
}

void ClientSession::scan(Words words, std::string_view, const Plan& plan) {
  const auto& servers = pool().servers();
  if (servers.size() > ScanList::most_servers)
    return answer("-ERR SCAN goes over 4096 servers at most\r\n");
  if (servers.size() == 0) return client_.answer(Failure::refused);  // a cluster that is not found
  const auto list = list_of(pool(), client_.mode().db);
  const auto cursor = list.read(words[1]);
  if (!cursor)
    return answer(
        "-ERR invalid cursor: not of the servers and the database of now; begin again "
        "with 0\r\n");
  // No setting may skip an ejected server: the client would miss its keys without knowing it.
  if (!servers[cursor->place]->health().well()) return client_.answer(Failure::refused);
  const std::string own = std::to_string(cursor->cursor);
  std::vector<std::string_view> asked(words.begin(), words.end());
  asked[1] = own;
  std::string bytes;
  resp::append_command(bytes, asked);
  SideRequest::make<ScanRequest>(client_, plan, list, cursor->place, std::move(bytes)).begin();
}

}  // namespace sluice::proxy::flow
