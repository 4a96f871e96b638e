#include "proxy/move/move_rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "proxy/config/read.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/listening.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"

namespace sluice::test {

namespace {

constexpr std::string_view its_user = "user tester on nopass ~* &* +@all";

}  // namespace

MoveRig::MoveRig(std::size_t proxies, std::vector<std::string> server_lines,
                 std::vector<std::string> pool_lines)
    : pool_lines_(std::move(pool_lines)) {
  server_lines.emplace_back(its_user);
  for (std::size_t i = 0; i < servers; ++i) {
    servers_.push_back(std::make_unique<RedisServer>(server_lines));
    ports_.push_back(servers_.back()->port());
  }
  start(proxies);
}

MoveRig::MoveRig(const Certificates& certificates, const std::vector<std::string>& lines)
    : pool_lines_{"server_tls:", "  ca: " + certificates["ca.pem"]} {
  for (std::size_t i = 0; i < servers; ++i) {
    ports_.push_back(free_port());
    auto its_lines = certificates.redis(ports_.back());
    its_lines.insert(its_lines.end(), lines.begin(), lines.end());
    its_lines.emplace_back(its_user);
    servers_.push_back(std::make_unique<RedisServer>(its_lines));
  }
  start(1);
}

void MoveRig::start(std::size_t proxies) {
  for (const bool is_new : {false, true}) {
    const auto file = is_new ? new_file() : old_file();
    std::ofstream{file} << text(is_new, "", 1);
    homes_[is_new] = proxy::make_homes(proxy::config::load(file).pools.front());
  }
  proxies_.resize(proxies);
  for (auto& one : proxies_) one.port = free_port();
  place_files(false);
  for (std::size_t i = 0; i < proxies; ++i) start_proxy(i);
}

std::string MoveRig::name(std::size_t proxy, std::string_view what) const {
  return directory_ / fmt::format("{}{}", what, proxy);
}

std::string MoveRig::text(bool is_new, const std::string& head, std::uint16_t port) const {
  auto text =
      head + fmt::format("alpha:\n  listen: 127.0.0.1:{}\n  redis: true\n  hash: murmur\n", port);
  for (const auto& line : pool_lines_) text += fmt::format("  {}\n", line);
  text += "  servers:\n";
  for (std::size_t i = 0; i < servers - (is_new ? 0 : 1); ++i)
    text += fmt::format("   - 127.0.0.1:{}:1 {}\n", ports_[i], static_cast<char>('a' + i));
  return text;
}

/// As one does who replaces a file that is read meanwhile.
void MoveRig::place_files(bool is_new) {
  for (std::size_t i = 0; i < proxies_.size(); ++i) {
    const auto head = fmt::format("sluice:\n  admin: {}\n", name(i, "admin"));
    std::ofstream{name(i, "fresh")} << text(is_new, head, proxies_[i].port);
    std::filesystem::rename(name(i, "fresh"), name(i, "file"));
  }
}

void MoveRig::start_proxy(std::size_t number) {
  auto& one = proxies_[number];
  one.process.emplace(
      std::vector<std::string>{built_path("sluice-proxy"), "-c", name(number, "file"), "-o",
                               name(number, "log"), "-s", std::to_string(free_port())},
      ProcessOptions{.output = name(number, "output")});
  const auto answers = [&] {
    try {
      return text_of(PlainClient{name(number, "admin")}.command({"PING"})) == "+PONG";
    } catch (const std::system_error&) {
      return false;
    }
  };
  if (!comes_to_listen(*one.process, one.port) || !comes_true(answers))
    throw std::runtime_error{"the proxy does not start: " + text_of_log(number)};
}

std::string MoveRig::text_of_log(std::size_t proxy) const {
  return text_of(std::filesystem::path{name(proxy, "log")}) +
         text_of(std::filesystem::path{name(proxy, "output")});
}

std::string MoveRig::tell_proxy(std::size_t number, std::vector<std::string> words) {
  PlainClient client{name(number, "admin")};
  return client.command(std::span<const std::string>{words}).as_text();
}

Process MoveRig::start_mover(bool back, std::vector<std::string> options,
                             std::size_t known_proxies) {
  // Through a shell, so that all movers' words are in one file.
  std::vector<std::string> argv{"/bin/sh",
                                "-c",
                                R"(exec "$@" >>"$0" 2>&1)",
                                directory_ / "told",
                                built_path("sluice-proxy"),
                                "move",
                                back ? new_file() : old_file(),
                                back ? old_file() : new_file()};
  for (std::size_t i = 0; i < std::min(known_proxies, proxies_.size()); ++i) {
    argv.emplace_back("--admin");
    argv.push_back(name(i, "admin"));
  }
  argv.insert(argv.end(), options.begin(), options.end());
  return Process{argv};
}

std::string MoveRig::told() const { return text_of(directory_ / "told"); }

bool MoveRig::comes_to_tell(std::string_view text) const {
  return comes_true([&] { return told().contains(text); });
}

void MoveRig::forget_told() const { std::filesystem::remove(directory_ / "told"); }

void MoveRig::move_all(bool back) {
  forget_told();
  auto mover = start_mover(back);
  if (!comes_to_tell("all keys have moved, but")) throw std::runtime_error{told()};
  place_files(!back);
  if (mover.wait() != 0) throw std::runtime_error{told()};
}

PlainClient MoveRig::direct(std::size_t server) {
  PlainClient client{servers_[server]->port()};
  static_cast<void>(client.command({"AUTH", "tester", "any"}));
  return client;
}

std::size_t MoveRig::home(std::string_view key, bool is_new) const {
  return homes_[is_new].of(key);
}

std::string MoveRig::moving_key(std::string_view prefix, std::size_t which) const {
  for (int i = 0;; ++i) {
    auto key = fmt::format("{}{}", prefix, i);
    if (home(key, false) != home(key, true) && which-- == 0) return key;
  }
}

std::vector<std::string> MoveRig::misplaced(bool is_new) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < servers; ++i) {
    auto client = direct(i);
    const auto keys = client.command({"KEYS", "*"});
    for (const auto& key : keys.as_items())
      if (home(key.as_text(), is_new) != i) found.push_back(key.as_text());
  }
  return found;
}

}  // namespace sluice::test
