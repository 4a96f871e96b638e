// SCAN: one server after the other, each from its beginning to its end.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/errand.hpp"
#include "proxy/flow/session/scan_cursor.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/redis/wire.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

constexpr std::string_view invalid_cursor = "-ERR invalid cursor\r\n";

/// A server's "[cursor, keys]": the content of the first, and all behind it.
struct ScanReply {
  std::string_view cursor, rest;
};

std::optional<ScanReply> read_scan_reply(std::string_view reply) noexcept {
  std::size_t scanned = 0;
  const auto array = element_at(reply, scanned);
  if (array.type != '*' || array.children != 2) return std::nullopt;
  const auto items = reply.substr(array.size);
  scanned = 0;
  const auto cursor = element_at(items, scanned);
  if (cursor.type != '$' || cursor.null) return std::nullopt;
  const auto length = static_cast<std::size_t>(cursor.number);
  return ScanReply{items.substr(cursor.size - length - 2, length), items.substr(cursor.size)};
}

class ScanErrand final : public Errand {
 public:
  static void begin(Client& client, const Plan& plan, std::size_t place, std::string bytes) {
    std::unique_ptr<ScanErrand> made{new ScanErrand{client, plan, place, std::move(bytes)}};
    auto& errand = *made;
    own(std::move(made));
    errand.ask(errand.server_, errand.bytes_);
  }

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
    if (is_of_pool() && ask_again(request, failure, server_, bytes_)) return;
    drop(request);
    give(failure);
  }

 private:
  ScanErrand(Client& client, const Plan& plan, std::size_t place, std::string bytes)
      : Errand(client, plan),
        server_(*client.pool().servers()[place]),
        place_(place),
        servers_(client.pool().servers().size()),
        bytes_(std::move(bytes)) {}

  /// A reload may have taken it away.
  bool is_of_pool() const {
    return std::ranges::any_of(pool_.servers(),
                               [this](const auto& server) { return server.get() == &server_; });
  }

  Server& server_;
  std::size_t place_, servers_;
  std::string bytes_;
};

}  // namespace

void ClientSession::scan(Words words, std::string_view, const Plan& plan) {
  const auto& servers = pool().servers();
  if (servers.size() > ScanCursor::most_servers)
    return answer("-ERR SCAN goes over 4096 servers at most\r\n");
  const auto cursor = read_scan_cursor(words[1], servers.size());
  if (!cursor) return answer(invalid_cursor);
  // Without it the client would miss its keys and not know: no setting makes that good.
  if (!servers[cursor->place]->health().well()) return client_.answer(Failure::refused);
  const std::string own = std::to_string(cursor->cursor);
  std::vector<std::string_view> asked(words.begin(), words.end());
  asked[1] = own;
  std::string bytes;
  resp::append_command(bytes, asked);
  ScanErrand::begin(client_, plan, cursor->place, std::move(bytes));
}

}  // namespace sluice::proxy
