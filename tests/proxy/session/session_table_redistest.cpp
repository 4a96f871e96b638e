// Each state of a session, and each event that it may live through: what its client sees is what
// the session means, or a clear error; and what a user may not do is denied in all of it.
#include <functional>

#include "proxy/session/stages.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

struct Event {
  std::string name;
  std::function<std::unique_ptr<Stage>()> begin;
  std::function<void(Stage&)> happen;
  bool disturbs = true;
};

template <class It, class... Args>
auto begin(const Args&... args) {
  return [=]() -> std::unique_ptr<Stage> { return std::make_unique<It>(args...); };
}

/// Other settings, by which nothing may be done that is not meant.
Event reload(std::string name, const TablePool& before, const TablePool& after,
             bool disturbs = true) {
  return {std::move(name), begin<StageInside>(before),
          [=](Stage& stage) { dynamic_cast<StageInside&>(stage).reload(after); }, disturbs};
}

Texts ejects(const char* failure, int retry) {
  return {"auto_eject_hosts: true", "server_failure_limit: 1", "timeout: 200",
          fmt::format("on_failure: {}", failure), fmt::format("server_retry_timeout: {}", retry)};
}

void lose_first(Stage& stage) { dynamic_cast<StageInside&>(stage).lose_first(); }

void add_events_of_cluster(std::vector<Event>& events) {
  const auto reload = [&](const char* name, const TablePool& after, std::size_t named,
                          bool disturbs) {
    events.push_back(
        {fmt::format("cluster, {}", name), begin<StageOfCluster>(),
         [=](Stage& stage) { dynamic_cast<StageOfCluster&>(stage).reload(after, named); },
         disturbs});
  };
  reload("nothing", {}, 0, false);
  reload("another node is named", {}, 4, true);  // subscribers are closed
  reload("connections anew", {.settings = {"server_connections: 2"}}, 0, true);
  reload("a user who may only read", {.app = " - {name: app, password: a, read_only: true}"}, 0,
         true);
  events.push_back({"cluster, a slot moves", begin<StageOfCluster>(),
                    [](Stage& stage) { dynamic_cast<StageOfCluster&>(stage).move_slot(); }});
  events.push_back(
      {"cluster, a slot moves and a reload", begin<StageOfCluster>(), [](Stage& stage) {
         auto& it = dynamic_cast<StageOfCluster&>(stage);
         it.move_slot();
         it.reload({}, 3);
       }});
  events.push_back({"cluster, a failover and a reload", begin<StageOfCluster>(), [](Stage& stage) {
                      auto& it = dynamic_cast<StageOfCluster&>(stage);
                      it.fail_over();
                      it.reload({}, 1);
                    }});
}

std::vector<Event> all_events() {
  const TablePool usual, mirrored{.has_mirror = true};
  const auto app = [](const std::string& more) {
    return TablePool{.app = " - {name: app, password: a" + more + "}"};
  };
  const auto move = [](bool down) {
    return [=](Stage& stage) { dynamic_cast<StageOfMove&>(stage).move(down); };
  };
  std::vector<Event> events{
      reload("nothing", usual, usual, false),
      reload("other timeouts", usual, {.settings = {"timeout: 30000"}}, false),
      reload("mirror on", usual, mirrored, false),
      reload("mirror off", mirrored, usual, false),
      reload("a server leaves", usual, {.of = {1}}),
      reload("a server comes first", usual, {.of = {2, 0, 1}}),
      reload("servers change places", usual, {.of = {1, 0}}),
      reload("another server in the place of one", usual, {.of = {2, 1}}),
      reload("another database", usual, {.settings = {"redis_db: 1"}}),
      reload("connections anew", usual, {.settings = {"server_connections: 2"}}),
      reload("a user's password", usual, app("b")),
      reload("a user who may only read", usual, app(", read_only: true")),
      reload("a user who may less", usual, app(", acl: \"+@all ~less:* &less:*\"")),
      reload("a user who is gone", usual, {.app = ""}),
  };
  for (const auto* const failure : {"rehash", "fail"}) {
    const TablePool ejecting{.settings = ejects(failure, 60'000)};
    events.push_back(
        {fmt::format("a server dies, {}", failure), begin<StageInside>(ejecting), lose_first});
    events.push_back(
        {fmt::format("a server hangs, {}", failure), begin<StageOfHanging>(ejecting), lose_first});
    const TablePool recovering{.settings = ejects(failure, 100)};
    events.push_back({fmt::format("a server comes back, {}", failure),
                      [=]() -> std::unique_ptr<Stage> {
                        auto stage = std::make_unique<StageInside>(recovering);
                        stage->lose_first();
                        return stage;
                      },
                      [](Stage& stage) { dynamic_cast<StageInside&>(stage).start_first(); }});
  }
  events.push_back({"upgrade", begin<StageOfUpgrade>(),
                    [](Stage& stage) { dynamic_cast<StageOfUpgrade&>(stage).upgrade(); }, false});
  events.push_back({"upgrade with another ring", begin<StageOfUpgrade>(), [](Stage& stage) {
                      dynamic_cast<StageOfUpgrade&>(stage).upgrade();
                      dynamic_cast<StageOfUpgrade&>(stage).reload({.of = {1}});
                    }});
  events.push_back({"move", begin<StageOfMove>(), move(false)});
  events.push_back({"move, and its end", begin<StageOfMove>(), [=](Stage& stage) {
                      move(false)(stage);
                      dynamic_cast<StageOfMove&>(stage).finish();
                    }});
  events.push_back({"move, new home down", begin<StageOfMove>(), move(true)});
  for (const bool own : {false, true})
    events.push_back({fmt::format("a replica hangs{}", own ? ", own writes are read" : ""),
                      begin<StageOfReplica>(own),
                      [](Stage& stage) { dynamic_cast<StageOfReplica&>(stage).hang(); }, false});
  events.push_back({"a replica lags", begin<StageOfReplica>(true),
                    [](Stage& stage) { dynamic_cast<StageOfReplica&>(stage).lag(); }, false});
  add_events_of_cluster(events);
  return events;
}

/// Cells that there cannot be.
struct Excuse {
  std::string_view state, event, reason;
};
constexpr Excuse excuses[] = {
    {"SCAN", "a server comes back", "while a server is out no scan begins"},
    {"SELECT", "cluster", "a cluster has one database"},
    {"SELECT, queued", "cluster", "a cluster has one database"},
    {"", "a server comes back, fail", "what needs the server that is out does not begin"},
};

bool is_excused(const SessionState& state, const Event& event) {
  return std::ranges::any_of(excuses, [&](const Excuse& one) {
    return (one.state.empty() || one.state == state.name) && event.name.starts_with(one.event);
  });
}

/// What a user may not do, in the state in which the pool is now: the servers see nothing of it.
void expect_denied(Stage& stage) {
  Monitors monitors{stage};
  for (const std::size_t home : {0, 1}) {
    const auto key = stage.key_at(home, "secret");
    for (const auto* const line :
         {"GET @", "SET @ x", "INCR @", "DUMP @", "DEL @", "MGET @ allowed:1", "BLPOP @ 0",
          "WATCH @", "SORT @", "EVAL return(1) 1 @", "EVALSHA {} 1 @", "SUBSCRIBE @",
          "PSUBSCRIBE @", "SSUBSCRIBE @", "PUBLISH @ x", "RENAME allowed:1 @",
          "SORT allowed:1 STORE @"}) {
      std::string asked = line;
      asked.replace(asked.find('@'), 1, key);
      auto client = stage.client("narrow n");
      EXPECT_EQ(stage.ask(client, asked).substr(0, 7), "-NOPERM") << asked;
      EXPECT_EQ(stage.ask(client, "MULTI"), "+OK");
      EXPECT_EQ(stage.ask(client, asked).substr(0, 1), "-") << asked;
      EXPECT_EQ(stage.ask(client, "EXEC").substr(0, 10), "-EXECABORT") << asked;
    }
  }
  EXPECT_EQ(monitors.seen("secret"), Texts{});
}

class SessionTable : public testing::TestWithParam<Event> {};

TEST_P(SessionTable, PX_EachStateLivesThroughIt) {
  const auto& event = GetParam();
  const auto stage = event.begin();
  std::vector<std::pair<std::string, std::unique_ptr<Session>>> cells;
  for (const auto& state : session_states()) {
    for (const std::size_t home : {0, 1}) {
      const auto number = cells.size();
      auto name = fmt::format("{}, home {}", state.name, home);
      auto session = std::make_unique<Session>(*stage, state,
                                               stage->key_at(home, fmt::format("cell{}:", number)));
      if (const auto trouble = session->begin(); !trouble.empty()) {
        EXPECT_TRUE(is_excused(state, event)) << name << ": " << trouble;
        continue;
      }
      cells.emplace_back(std::move(name), std::move(session));
    }
  }
  event.happen(*stage);
  for (const auto& [name, session] : cells) {
    EXPECT_EQ(session->go_on(), "") << name;
    if (!event.disturbs)
      EXPECT_TRUE(session->is_undisturbed())
          << name << ": " << fmt::format("{}", fmt::join(session->replies(), " | "));
  }
  expect_denied(*stage);
  RecordProperty("cells", std::to_string(cells.size()));
}

/// A limit refuses the request number `which` of each session, and then no other.
TEST(SessionLimits, PX03_EachRequestIsRefusedAndNoOther) {
  for (const auto& state : session_states()) {
    const auto requests = state.before.size() + state.after.size();
    for (std::size_t which = 1; which <= requests; ++which) {
      StageOfHanging stage{
          {.settings = {fmt::format("rate_limit: {{per_user: 1/s burst {}}}", which)}}};
      Session session{stage, state, stage.key_at(which % 2, "cell")};
      const auto wrong = session.play(which, [&] {
        EXPECT_TRUE(comes_true([&] {
          const auto now = totals(stage.proxy);
          return now.delayed_requests != 0 || std::cmp_greater_equal(now.requests, which + 2);
        })) << state.name
            << which;
        stage.proxy.pass(std::chrono::seconds{20});
      });
      EXPECT_EQ(wrong, "") << state.name << ", request " << which;
    }
  }
}

/// "client|reply": as a rule names it.
std::string verb_of(const std::string& line) {
  std::istringstream stream{line};
  std::string verb, second;
  stream >> verb >> second;
  if (verb == "CLIENT" || verb == "SCRIPT") verb += '|' + second;
  std::ranges::transform(verb, verb.begin(), [](unsigned char c) { return std::tolower(c); });
  return verb;
}

/// Each request of each session is denied: as a server would, and the servers see nothing of it.
TEST(SessionRights, PX01_EachRequestIsDeniedAsByAServer) {
  for (const auto& state : session_states()) {
    auto lines = state.before;
    lines.insert(lines.end(), state.after.begin(), state.after.end());
    for (const auto& line : lines) {
      const auto verb = verb_of(line);
      SCOPED_TRACE(state.name + " without " + verb);
      StageInside stage{{.app = " - {name: app, password: a, acl: \"+@all ~* &* -" + verb + "\"}"}};
      StageOfServer bare{stage.settings()};
      PlainClient admin{bare.port()};
      for (const auto& user :
           {"app on >a +@all ~* &* -" + verb, std::string{"root on >r +@all ~* &*"},
            std::string{"other on >o +@all -@write ~* &*"}})
        ASSERT_EQ(ask(admin, "ACL SETUSER " + user), "+OK");
      Monitors monitors{stage};
      const auto key = stage.key_at(0, "cell");
      Session session{stage, state, key}, right{bare, state, key};
      static_cast<void>(session.play());
      static_cast<void>(right.play());
      ASSERT_EQ(session.replies().size(), right.replies().size());
      for (std::size_t i = 0; i < session.replies().size(); ++i) {
        const auto &its = session.replies()[i], &rights = right.replies()[i];
        const bool differs = its.starts_with("*2 $") || its.starts_with('%');  // SCAN, HELLO
        EXPECT_EQ(its.substr(0, differs ? 2 : its.npos),
                  rights.substr(0, differs ? 2 : rights.npos));
      }
      for (const auto& seen : monitors.seen(key))
        EXPECT_FALSE(seen.contains('"' + line.substr(0, line.find(' ')) + '"') ||
                     seen.contains('"' + verb + '"'))
            << seen;
      ASSERT_EQ(ask(admin, "ACL DELUSER app root other"), ":3");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Events, SessionTable, testing::ValuesIn(all_events()),
                         [](const auto& info) {
                           std::string name;
                           bool begins = true;
                           for (const char c : info.param.name) {
                             if (std::isalnum(c)) name += begins ? std::toupper(c) : c;
                             begins = !std::isalnum(c);
                           }
                           return name;
                         });

}  // namespace
}  // namespace sluice::test
