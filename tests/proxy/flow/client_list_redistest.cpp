// X26: CLIENT LIST, by which the libraries of job queues find their workers.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using ClientList = TwoServers;
using Fields = std::map<std::string, std::string>;

/// As Bull, redis-py and redis-rb read it: a client in a line, "name=value" between blanks.
std::vector<Fields> clients_in(const std::string& list) {
  std::vector<Fields> clients;
  std::istringstream lines{list};
  for (std::string line; std::getline(lines, line);) {
    auto& fields = clients.emplace_back();
    std::istringstream words{line};
    for (std::string word; words >> word;) {
      const auto at = word.find('=');
      EXPECT_NE(at, std::string::npos) << word;
      fields[word.substr(0, at)] = word.substr(at + 1);
    }
  }
  return clients;
}

std::vector<Fields> listed(PlainClient& client, const std::string& how = "") {
  client.send(request("CLIENT LIST" + how));
  const auto reply = client.read();
  EXPECT_FALSE(reply.is_error()) << reply.as_text();
  return clients_in(reply.as_text());
}

std::vector<std::string> names(const std::vector<Fields>& clients) {
  std::vector<std::string> names;
  for (const auto& client : clients)
    if (!client.at("name").empty()) names.push_back(client.at("name"));
  std::ranges::sort(names);
  return names;
}

TEST_F(ClientList, X26_HasTheClientsOfThePoolOfAllWorkers) {
  for (const std::size_t servers : {1U, 2U}) {
    auto used = ports();
    used.resize(servers);
    ProxyUnderTest proxy{used, {}, {"workers: 3"}};
    std::vector<PlainClient> workers;
    std::vector<std::string> expected;
    for (int i = 10; i < 30; ++i) {
      workers.emplace_back(proxy.port());
      expected.push_back(fmt::format("bull:queue{}", i));
      EXPECT_EQ(ask(workers.back(), "CLIENT SETNAME " + expected.back()), "+OK");
    }
    for (auto& worker : workers) EXPECT_EQ(names(listed(worker)), expected);
    const auto own = clients_in(workers[0].command({"CLIENT", "INFO"}).as_text()).at(0);
    const auto of_id = listed(workers[7], " ID " + own.at("id"));
    ASSERT_EQ(of_id.size(), 1U);
    for (const auto* field : {"id", "addr", "name", "db", "user", "resp", "flags"})
      EXPECT_EQ(of_id[0].at(field), own.at(field)) << field;
    EXPECT_EQ(own.at("addr").substr(0, 10), "127.0.0.1:");
    // Libraries read each of these as a number.
    for (const auto* field :
         {"fd", "age", "idle", "db", "sub", "psub", "ssub", "multi", "qbuf", "qbuf-free",
          "argv-mem", "multi-mem", "rbs", "rbp", "obl", "oll", "omem", "tot-mem", "redir"})
      EXPECT_NO_THROW(static_cast<void>(std::stol(own.at(field)))) << field;
  }
}

TEST_F(ClientList, X26_IsAnsweredInItsTurn) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient client{proxy.port()};
  const auto replies = ask_all(client, {"SET a 1", "CLIENT SETNAME x", "CLIENT LIST", "GET a"});
  EXPECT_EQ(replies[0], "+OK");
  EXPECT_NE(replies[2].find(" name=x "), std::string::npos);
  EXPECT_EQ(replies[3], "$1 1");
  EXPECT_EQ(ask(client, "HELLO 3").front(), '%');
  EXPECT_EQ(ask(client, "CLIENT LIST").substr(0, 1), "=");
  // One that leaves before the answer.
  for (int i = 0; i < 50; ++i) PlainClient{proxy.port()}.send(request("CLIENT LIST"));
  EXPECT_EQ(ask(client, "GET a"), "$1 1");
}

TEST_F(ClientList, X26_ByKind) {
  ProxyUnderTest proxy{ports()};
  PlainClient listener{proxy.port()}, client{proxy.port()};
  EXPECT_EQ(ask(listener, "CLIENT SETNAME listener"), "+OK");
  EXPECT_EQ(ask(listener, "SUBSCRIBE ch").substr(0, 2), "*3");
  EXPECT_EQ(ask(client, "CLIENT SETNAME asker"), "+OK");
  EXPECT_EQ(names(listed(client)), (std::vector<std::string>{"asker", "listener"}));
  EXPECT_EQ(names(listed(client, " TYPE pubsub")), (std::vector<std::string>{"listener"}));
  EXPECT_EQ(names(listed(client, " TYPE normal")), (std::vector<std::string>{"asker"}));
  EXPECT_TRUE(listed(client, " TYPE replica").empty());
  EXPECT_EQ(ask(client, "CLIENT LIST TYPE x"), "-ERR Unknown client type 'x'");
  EXPECT_EQ(ask(client, "CLIENT LIST ID x"), "-ERR Invalid client ID");
  EXPECT_EQ(ask(client, "CLIENT LIST x"), "-ERR syntax error");
}

TEST_F(ClientList, X26_AUserSeesItsOwnClientsAlone) {
  ProxyUnderTest proxy{ports(),
                       {"users:", "  - {name: ann, password: a}", "  - {name: bob, password: b}"},
                       {"workers: 2"}};
  PlainClient ann{proxy.port()}, bob{proxy.port()}, also_ann{proxy.port()}, stranger{proxy.port()};
  EXPECT_EQ(ask_all(ann, {"AUTH ann a", "CLIENT SETNAME ann1"}).back(), "+OK");
  EXPECT_EQ(ask_all(also_ann, {"AUTH ann a", "CLIENT SETNAME ann2"}).back(), "+OK");
  EXPECT_EQ(ask_all(bob, {"AUTH bob b", "CLIENT SETNAME bob1"}).back(), "+OK");
  EXPECT_EQ(ask(stranger, "CLIENT LIST").substr(0, 7), "-NOAUTH");
  EXPECT_EQ(names(listed(ann)), (std::vector<std::string>{"ann1", "ann2"}));
  EXPECT_EQ(names(listed(bob)), (std::vector<std::string>{"bob1"}));
}

}  // namespace
}  // namespace sluice::test
