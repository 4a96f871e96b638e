#include "support/server_pair.hpp"

#include <stdexcept>
#include <utility>

#include "support/comes_true.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

template <class Condition>
void await(const char* what, Condition condition) {
  if (!comes_true(condition)) throw std::runtime_error{what};
}

}  // namespace

ServerPair::ServerPair() : primary_(std::make_unique<RedisServer>()), port_(primary_->port()) {
  add_replica();
}

void ServerPair::wait_for_copy_of(const std::string& key) const {
  PlainClient client{replica_->port()};
  await("the replica does not hear of the key", [&] {
    return client.command({"EXISTS", key}).as_integer() == 1;
  });
}

void ServerPair::cut_off() const {
  PlainClient{replica_->port()}.command({"REPLICAOF", "NO", "ONE"});
}

void ServerPair::replace_primary() {
  PlainClient client{replica_->port()};
  client.command({"REPLICAOF", "NO", "ONE"});
  primary_->kill();
  const auto port = std::to_string(port_);
  // The port is free once the kernel has cleared away the dead server.
  await("the replica does not get the port of the primary", [&] {
    return !client.command({"CONFIG", "SET", "port", port}).is_error();
  });
  primary_ = std::move(replica_);
}

void ServerPair::add_replica() {
  replica_ = std::make_unique<RedisServer>(
      std::vector<std::string>{"replicaof 127.0.0.1 " + std::to_string(port_)});
  PlainClient client{replica_->port()};
  await("the replica does not follow", [&] {
    return client.command({"INFO", "replication"}).as_text().find("master_link_status:up") !=
           std::string::npos;
  });
}

}  // namespace sluice::test
