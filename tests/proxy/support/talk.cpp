#include "proxy/support/talk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "resp/writer.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

std::string value_of(const std::string& key, std::size_t padding) {
  return key + '#' + std::string(padding, 'x');
}

void append_redis(std::string& bytes, const Asked& asked, std::size_t padding) {
  std::vector<std::string_view> words{asked.what == Asked::What::get   ? "GET"
                                      : asked.what == Asked::What::set ? "SET"
                                                                       : "MGET"};
  words.insert(words.end(), asked.keys.begin(), asked.keys.end());
  std::string value;
  if (asked.what == Asked::What::set)
    words.emplace_back(value = value_of(asked.keys.front(), padding));
  resp::append_command(bytes, words);
}

void append_memcached(std::string& bytes, const Asked& asked, std::size_t padding) {
  if (asked.what == Asked::What::set) {
    const auto value = value_of(asked.keys.front(), padding);
    bytes += fmt::format("set {} 0 0 {}\r\n{}\r\n", asked.keys.front(), value.size(), value);
  } else {
    bytes += fmt::format("get {}\r\n", fmt::join(asked.keys, " "));
  }
}

class RedisTalk final : public Talk {
 public:
  explicit RedisTalk(std::uint16_t port) : client_(port) {}

  void send(std::string_view bytes) override { client_.send(bytes); }
  Outcome read(const Asked& asked) override {
    const Value reply = client_.read();
    if (reply.is_error()) return Outcome::error;
    return is_answer(asked, reply) ? Outcome::right : Outcome::wrong;
  }

 private:
  static bool fits(const Value& value, const std::string& key) {
    return value.is_null() || value.is_error() || value.as_text().starts_with(key + '#');
  }
  static bool is_answer(const Asked& asked, const Value& reply) {
    switch (asked.what) {
      case Asked::What::set: return reply.as_text() == "OK";
      case Asked::What::get: return fits(reply, asked.keys.front());
      case Asked::What::get_many: return std::ranges::equal(reply.as_items(), asked.keys, fits);
    }
    return false;
  }

  PlainClient client_;
};

class MemcachedTalk final : public Talk {
 public:
  explicit MemcachedTalk(std::uint16_t port) : client_(port) {}

  void send(std::string_view bytes) override { client_.send(bytes); }
  Outcome read(const Asked& asked) override {
    bool right = true;
    for (;;) {
      const auto line = take_line();
      if (line.starts_with("SERVER_ERROR ")) return Outcome::error;
      if (asked.what == Asked::What::set) return line == "STORED" ? Outcome::right : Outcome::wrong;
      if (line == "END") return right ? Outcome::right : Outcome::wrong;
      if (!line.starts_with("VALUE ")) return Outcome::wrong;
      const auto key = line.substr(6, line.find(' ', 6) - 6);
      const auto size = std::strtoul(line.c_str() + line.rfind(' '), nullptr, 10);
      const auto value = take(size + 2);
      right = right && std::ranges::count(asked.keys, key) > 0 && value.starts_with(key + '#');
    }
  }

 private:
  std::string take(std::size_t size) {
    while (input_.size() < size) input_ += more();
    std::string taken = input_.substr(0, size);
    input_.erase(0, size);
    return taken;
  }
  std::string take_line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos) input_ += more();
    std::string line = take(end + 2);
    line.resize(end);
    return line;
  }
  std::string more() {
    auto bytes = client_.read_raw();
    if (bytes.empty()) throw std::system_error{ECONNRESET, std::generic_category(), "closed"};
    return bytes;
  }

  PlainClient client_;
  std::string input_;
};

}  // namespace

void append_request(std::string& bytes, Language language, const Asked& asked,
                    std::size_t padding) {
  if (language == Language::redis)
    append_redis(bytes, asked, padding);
  else
    append_memcached(bytes, asked, padding);
}

std::unique_ptr<Talk> connect(Language language, std::uint16_t port) {
  if (language == Language::redis) return std::make_unique<RedisTalk>(port);
  return std::make_unique<MemcachedTalk>(port);
}

}  // namespace sluice::test
