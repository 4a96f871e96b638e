#include "proxy/support/load.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <system_error>

#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

std::string key_of(int client, std::uint64_t turn, int place) {
  return fmt::format("key:{}:{}:{}", client, turn % 64, place);
}

/// SET and GET of each key; a value is its key.
std::string pipeline(int client, std::uint64_t turn, int depth) {
  std::string bytes;
  for (int place = 0; place < depth; ++place) {
    const auto key = key_of(client, turn, place);
    bytes += fmt::format("*3\r\n$3\r\nSET\r\n${0}\r\n{1}\r\n${0}\r\n{1}\r\n", key.size(), key);
    bytes += fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
  }
  return bytes;
}

void trouble(Load::Count& count, std::uint64_t& kind, std::string what) {
  ++kind;
  if (count.first_trouble.empty()) count.first_trouble = std::move(what);
}

void check(Load::Count& count, const Value& reply, const std::string& key, bool is_get) {
  if (reply.is_error())
    trouble(count, count.errors, key + ": " + reply.as_text());
  else if (reply.is_null() && is_get)
    ++count.replies;  // its home is another since it was written
  else if (reply.as_text() != (is_get ? key : "OK"))
    trouble(count, count.wrong, fmt::format("{} was answered with {}", key, reply.as_text()));
  else
    ++count.replies;
}

void connect(std::optional<PlainClient>& client, std::uint16_t port, Load::Count& count) {
  client.reset();
  try {
    client.emplace(port);
  } catch (const std::system_error& error) {
    trouble(count, count.refused, error.what());
  }
}

}  // namespace

Load::Load(std::uint16_t port, Options options)
    : port_(port), options_(options), counts_(static_cast<std::size_t>(options.clients)) {
  for (int number = 0; number < options.clients; ++number)
    threads_.emplace_back(
        [this, number] { run(number, counts_[static_cast<std::size_t>(number)]); });
}

Load::~Load() { stop(); }

void Load::run(int number, Count& count) {
  std::optional<PlainClient> client;
  for (std::uint64_t turn = 0; !done_.load(); ++turn) {
    if (!client || options_.reconnects) connect(client, port_, count);
    if (!client) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      continue;
    }
    const auto before = count.replies;
    try {
      client->send(pipeline(number, turn, options_.depth));
      for (int place = 0; place < options_.depth; ++place) {
        const auto key = key_of(number, turn, place);
        check(count, client->read(), key, false);
        check(count, client->read(), key, true);
      }
    } catch (const std::system_error& error) {
      trouble(count, count.lost,
              fmt::format("turn {} of client {}: {} after {} replies", turn, number, error.what(),
                          count.replies - before));
      if (count.replies == before) ++count.unserved;
      client.reset();
    }
    replies_ += count.replies - before;
  }
}

bool Load::goes_on(std::uint64_t more) const {
  const auto wanted = replies() + more;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (replies() < wanted && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return replies() >= wanted;
}

Load::Count Load::stop() {
  done_ = true;
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
  Count all;
  for (const auto& count : counts_) {
    all.replies += count.replies;
    all.wrong += count.wrong;
    all.errors += count.errors;
    all.lost += count.lost;
    all.unserved += count.unserved;
    all.refused += count.refused;
    if (all.first_trouble.empty()) all.first_trouble = count.first_trouble;
  }
  return all;
}

}  // namespace sluice::test
