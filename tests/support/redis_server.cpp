#include "support/redis_server.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/free_port.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

constexpr std::chrono::seconds patience{20};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> config, Address address)
    : config_(std::move(config)), address_(address) {
  constexpr int tries = 5;  // another program may take the free port before the server does
  for (int left = tries; left > 0; --left) {
    if (address_ == Address::port) port_ = free_port();
    if (try_start()) return;
  }
  throw std::runtime_error{"redis-server does not start:\n" + log()};
}

RedisServer::~RedisServer() {
  if (process_) process_->kill();
}

std::string RedisServer::socket_path() const { return (directory_ / "redis.sock").string(); }

std::string RedisServer::url() const {
  return address_ == Address::port ? "redis://127.0.0.1:" + std::to_string(port_)
                                   : "redis+unix://" + socket_path();
}

std::string RedisServer::log() const {
  constexpr std::size_t most = 4096;
  auto text = text_of(directory_ / "redis.log");
  return text.size() > most ? text.substr(text.size() - most) : text;
}

void RedisServer::write_config() const {
  std::ofstream file{directory_ / "redis.conf"};
  file << "bind 127.0.0.1\nprotected-mode no\ndaemonize no\nsave \"\"\nshutdown-on-sigterm save\n"
       << "enable-debug-command local\nrepl-diskless-sync-delay 0\n"  // it waits for more replicas
       << "port " << port_ << "\ndir " << directory_.str() << "\nlogfile "
       << (directory_ / "redis.log").string() << '\n';
  if (address_ == Address::unix_socket) file << "unixsocket " << socket_path() << '\n';
  for (const auto& line : config_) file << line << '\n';
}

bool RedisServer::answers() const try {
  PlainClient client = address_ == Address::port ? PlainClient{port_} : PlainClient{socket_path()};
  const auto reply = client.command({"PING"});
  return !reply.is_error() || reply.as_text().starts_with("NOAUTH");  // not while it loads
} catch (const std::system_error&) {
  return false;  // not listening yet
}

bool RedisServer::try_start() {
  write_config();
  process_.emplace(
      std::vector<std::string>{"redis-server", (directory_ / "redis.conf").string()},
      ProcessOptions{
          .directory = directory_.path(), .environment = {}, .output = directory_ / "out.log"});
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (process_->running() && std::chrono::steady_clock::now() < deadline) {
    if (answers()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});  // it tells nobody when it is ready
  }
  process_->kill();
  process_.reset();
  return false;
}

void RedisServer::start() {
  if (!process_ && !try_start())
    throw std::runtime_error{"redis-server does not start again:\n" + log()};
}

void RedisServer::kill() {
  if (process_) process_->kill();
  process_.reset();
}

void RedisServer::restart(bool keep_data) {
  if (keep_data && process_) {
    process_->terminate();
    process_->wait();
    process_.reset();
  } else {
    kill();
    directory_.clear();
  }
  start();
}

void RedisServer::stop() { process_->stop(); }
void RedisServer::cont() { process_->cont(); }

}  // namespace sluice::test
