// The floor: the least that a proxy can do. One thread, epoll, the length of each request and
// reply, FNV-1a of the key to choose one of the servers, replies in the order of the requests, one
// write for each connection and turn. No timeouts, no statistics, no errors: what it cannot do ends
// it.
//     proxy_floor LISTEN-PORT SERVER-PORT...
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Client;

struct Peer {
  int descriptor = -1;
  std::string in, out;
  bool dirty = false;
  Client* client = nullptr;  // itself, when it is one
};

struct Slot {
  bool done = false;
  std::string reply;
};

struct Client {
  Peer peer;
  std::deque<Slot> slots;
  std::uint64_t first = 0;
};

struct Server {
  Peer peer;
  std::deque<std::pair<Client*, std::uint64_t>> line;
};

std::vector<std::unique_ptr<Server>> servers;
std::vector<Peer*> dirty;
int epoll_descriptor;
char scratch[64 << 10];

void touch(Peer& peer) {
  if (peer.dirty) return;
  peer.dirty = true;
  dirty.push_back(&peer);
}

void flush(Peer& peer) {
  peer.dirty = false;
  while (!peer.out.empty()) {
    const auto sent = ::send(peer.descriptor, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    peer.out.erase(0, static_cast<std::size_t>(sent));
  }
}

/// The number behind the type letter at `at`; moves `at` behind its line. -2: the line is not
/// whole.
long number(std::string_view bytes, std::size_t& at) {
  long value = 0;
  std::size_t i = at + 1;
  const bool negative = i < bytes.size() && bytes[i] == '-';
  if (negative) ++i;
  for (; i < bytes.size() && bytes[i] != '\r'; ++i) value = value * 10 + (bytes[i] - '0');
  if (i + 1 >= bytes.size()) return -2;
  at = i + 2;
  return negative ? -1 : value;
}

std::size_t request_size(std::string_view bytes, std::string_view& key) {
  std::size_t at = 0;
  const long words = number(bytes, at);
  if (words < 0) return 0;
  for (long i = 0; i < words; ++i) {
    if (at >= bytes.size()) return 0;
    const long length = number(bytes, at);
    if (length < 0 || at + static_cast<std::size_t>(length) + 2 > bytes.size()) return 0;
    if (i == 1) key = bytes.substr(at, static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length) + 2;
  }
  return at;
}

std::size_t reply_size(std::string_view bytes) {
  std::size_t at = 0;
  for (long items = 1; items > 0; --items) {
    if (at >= bytes.size()) return 0;
    const char type = bytes[at];
    if (type != '$' && type != '*') {
      const auto end = bytes.find('\n', at);
      if (end == bytes.npos) return 0;
      at = end + 1;
      continue;
    }
    const long count = number(bytes, at);
    if (count == -2) return 0;
    if (type == '*')
      items += count > 0 ? count : 0;
    else if (count >= 0)
      at += static_cast<std::size_t>(count) + 2;
    if (at > bytes.size()) return 0;
  }
  return at;
}

std::uint32_t hash(std::string_view key) {
  std::uint32_t value = 2166136261U;
  for (const char c : key) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
  return value;
}

std::size_t take_requests(Client& client, std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    std::string_view key;
    const auto size = request_size(bytes.substr(used), key);
    if (size == 0) break;
    Server& server = *servers[hash(key) % servers.size()];
    server.peer.out.append(bytes.substr(used, size));
    server.line.emplace_back(&client, client.first + client.slots.size());
    client.slots.emplace_back();
    touch(server.peer);
    used += size;
  }
  return used;
}

std::size_t take_replies(Server& server, std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    const auto size = reply_size(bytes.substr(used));
    if (size == 0) break;
    if (server.line.empty()) std::abort();
    const auto [client, number] = server.line.front();
    server.line.pop_front();
    const auto reply = bytes.substr(used, size);
    used += size;
    if (number != client->first) {
      auto& slot = client->slots[number - client->first];
      slot.done = true;
      slot.reply = reply;
      continue;
    }
    client->peer.out.append(reply);
    touch(client->peer);
    do {
      client->slots.pop_front();
      ++client->first;
      if (!client->slots.empty() && client->slots.front().done)
        client->peer.out.append(client->slots.front().reply);
    } while (!client->slots.empty() && client->slots.front().done);
  }
  return used;
}

/// False: it has ended.
template <class Take>
bool read(Peer& peer, Take take) {
  for (;;) {
    const auto got = ::recv(peer.descriptor, scratch, sizeof scratch, 0);
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    const auto size = static_cast<std::size_t>(got);
    if (peer.in.empty()) {
      const auto used = take(std::string_view{scratch, size});
      peer.in.assign(scratch + used, size - used);
    } else {
      peer.in.append(scratch, size);
      peer.in.erase(0, take(std::string_view{peer.in}));
    }
    if (size < sizeof scratch) return true;
  }
}

void watch(int descriptor, std::uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  if (::epoll_ctl(epoll_descriptor, EPOLL_CTL_ADD, descriptor, &event) != 0) std::abort();
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const int on = 1;
  epoll_descriptor = ::epoll_create1(0);
  for (int i = 2; i < argc; ++i) {
    auto& server = *servers.emplace_back(std::make_unique<Server>());
    server.peer.descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    const auto address = loopback(std::atoi(argv[i]));
    if (::connect(server.peer.descriptor, reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0)
      std::abort();
    ::setsockopt(server.peer.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(server.peer.descriptor, F_SETFL, O_NONBLOCK);
    watch(server.peer.descriptor, EPOLLIN | EPOLLET, &server);
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = loopback(std::atoi(argv[1]));
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 512) != 0)
    return 1;
  watch(listener, EPOLLIN, nullptr);

  for (;;) {
    epoll_event events[256];
    const int count = ::epoll_wait(epoll_descriptor, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      void* const tag = events[i].data.ptr;
      if (!tag) {
        for (int client; (client = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
          auto* made = new Client;
          made->peer.descriptor = client;
          made->peer.client = made;
          ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          watch(client, EPOLLIN | EPOLLET, made);
        }
        continue;
      }
      auto& peer = *static_cast<Peer*>(tag);  // the first member of both
      if (peer.client) {
        if (!read(peer, [&](std::string_view bytes) { return take_requests(*peer.client, bytes); }))
          ::close(peer.descriptor);  // and it is forgotten: this is the floor
      } else {
        auto& server = *static_cast<Server*>(tag);
        if (!read(peer, [&](std::string_view bytes) { return take_replies(server, bytes); }))
          return 1;
      }
    }
    for (Peer* peer : dirty) flush(*peer);
    dirty.clear();
  }
}
