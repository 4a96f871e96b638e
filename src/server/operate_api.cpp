#include "server/operate_api.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "http/text.hpp"
#include "server/background.hpp"
#include "server/operate_text.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_on_page = 500;
constexpr std::string_view version = SLUICE_VERSION;

Unexpected<http::Response> refuse_asked(const http::ProblemType& type,
                                        std::string_view detail = {}) {
  return Unexpected{http::problem(type, detail)};
}

std::string outcome_of(const http::Response& response) {
  if (response.status < 400) return "done";
  const auto problem = JsonValue::parse(response.body, {.bytes = 64 << 10});
  const auto text = [&](std::string_view name) {
    const auto* const value = problem ? problem->find(name) : nullptr;
    return value && value->as_text() ? *value->as_text() : std::string{};
  };
  const auto detail = text("detail");
  return detail.empty() ? text("title") : fmt::format("{}: {}", text("title"), cut(detail));
}

void add_found(JournalEntry& entry, const Asked::Found& found) {
  if (!found.sale.empty()) entry.target = found.sale;
  entry.order = found.order;
  if (found.amount == 0) return;
  entry.amount = fmt::to_string(found.amount);
  entry.currency = found.currency;
}

}  // namespace

OperateApi::OperateApi(Store& store, Shop& shop, Operators& operators, EndedLogins& ended,
                       Snapshots& snapshots, std::vector<OperateCall> calls)
    : shop_(shop),
      operators_(operators),
      ended_(ended),
      snapshots_(snapshots),
      journal_(store),
      calls_(std::move(calls)),
      threads_(shop.options().orders),
      store_threads_(shop.options().orders, {.threads = 3}) {
  calls_.push_back(journal_call());
}

// --- who is there, and how everything stands ---

void OperateApi::log_in(http::Request&& request, http::Responder&& respond) {
  auto login = operators_.log_in(request);
  respond.send(std::move(login.answer));
  if (!login.id.empty()) note({.id = std::move(login.id)}, "log_in");
}

void OperateApi::log_out(http::Request&& request, http::Responder&& respond) {
  auto logout = operators_.log_out(request);
  respond.send(std::move(logout.answer));
  if (logout.who) note(std::move(*logout.who), "log_out");
}

/// Nobody waits for it: a store that is away keeps no operator out. Each has a turn of its own, so
/// that it is not lost behind what the operator waits for. The other processes learn of a logout.
void OperateApi::note(Operator who, std::string_view action) {
  const JournalEntry entry{.by = who.id, .action = std::string{action}, .outcome = "done"};
  const auto work = [this, entry, who](const BlockingThreads::Orders&) {
    if (!who.login.empty()) ended_.tell(who.login, *who.until);
    journal_.end(journal_.begin(entry), entry);
  };
  const auto failed = [this, entry](const std::exception& failure) {
    journal_.miss(entry, failure.what());
  };
  const auto turn = fmt::format("note {}", notes_.fetch_add(1));
  if (store_threads_.run_lazily(turn, work, failed) != BlockingThreads::Accepted::yes)
    journal_.miss(entry, "too much waits");
}

void OperateApi::show_session(http::Request&& request, http::Responder&& respond) {
  const auto who = operators_.who_asks(request);
  if (!who) return respond.send(who.error());
  const auto session = Json::object({{"operator", who->id},
                                     {"open", who->is_anybody},
                                     {"may_act", who->may_act},
                                     {"version", version},
                                     {"now", millisecond_text(system_clock().wall())}});
  respond.send(for_operators(http::json(200, session)));
}

void OperateApi::show_state(http::Request&& request, http::Responder&& respond) {
  const auto who = operators_.who_asks(request);
  if (!who) return respond.send(who.error());
  snapshots_.answer(std::move(respond), *who);
}

void OperateApi::follow_state(http::Request&& request, http::Responder&& respond) {
  const auto who = operators_.who_asks(request);
  if (!who) return respond.send(who.error());
  snapshots_.stream(std::move(respond), *who);
}

// --- calls of the table ---

Expected<Asked, http::Response> OperateApi::asked_of(const OperateCall& call,
                                                     http::Request&& request) const {
  auto who = call.method == "GET" ? operators_.who_asks(request) : operators_.who_acts(request);
  if (!who) return Unexpected{std::move(who.error())};
  Asked asked{.by = std::move(*who), .request = std::move(request)};
  if (!http::unescape(asked.request.raw_query(), true))
    return refuse_asked(problems::bad_parameter, "the query is no UTF-8, or badly escaped");
  auto body = body_of_call(call, asked.request.body());
  if (!body) return Unexpected{std::move(body.error())};
  asked.body = std::move(*body);
  if (call.path.contains("{sale}")) {
    asked.offer = shop_.find(asked.request.parameter("sale"));
    if (!asked.offer)
      return refuse_asked(problems::no_sale, shop_.trouble_of(asked.request.parameter("sale")));
  }
  asked.after = asked.request.query("after").value_or("");
  if (const auto most = asked.request.query("most")) {
    const auto count = parse_integer<std::size_t>(*most);
    if (!count || *count < 1 || *count > most_on_page)
      return refuse_asked(problems::bad_parameter, "'most' is 1 to 500");
    asked.most = *count;
  }
  return asked;
}

void OperateApi::serve(const OperateCall& call, http::Request&& request,
                       http::Responder&& respond) {
  auto asked = asked_of(call, std::move(request));
  if (!asked) return respond.send(std::move(asked.error()));
  // No operator has a name with a blank.
  const auto subject = call.subject.empty() ? asked->by.id : call.subject + " of all";
  const auto shared = std::make_shared<Asked>(std::move(*asked));
  const auto serve = [this, &call, shared](const BlockingThreads::Orders& orders) {
    if (auto refusal = operators_.refuse_ended(shared->by)) return *refusal;
    return for_operators(call.method == "GET" ? call.serve(*shared, orders)
                                              : act(call, *shared, orders));
  };
  // Changes wait for the store, and leave a thread to calls that only read.
  const std::string changes = call.method == "GET" ? "" : "changes";
  in_background_lazily(call.asks_database ? threads_ : store_threads_, subject, std::move(respond),
                       serve, changes, {}, call.within, {}, call.method == "GET");
}

/// What cannot be written into the journal is not begun; where that is known no caller waits.
http::Response OperateApi::act(const OperateCall& call, Asked& asked,
                               const BlockingThreads::Orders& orders) {
  JournalEntry entry{.by = asked.by.id,
                     .action = call.operation,
                     .target = asked.offer ? asked.sale() : std::string{},
                     .detail = detail_of(call, asked),
                     .outcome = "begun"};
  if (const auto trouble = shop_.trouble(Needed::store); !trouble.empty())
    throw Error{Errc::connection, trouble};
  const auto id = journal_.begin(entry);
  try {
    auto response =
        call.is_final && asked.text("confirm") != asked.confirmed()
            ? http::problem(problems::not_confirmed,
                            fmt::format("send '{}' as 'confirm'", cut(asked.confirmed())))
            : call.serve(asked, orders);
    entry.outcome = outcome_of(response);
    add_found(entry, asked.found);
    journal_.end(id, entry);
    return response;
  } catch (const std::exception& failure) {
    entry.outcome = fmt::format("failed: {}", cut(failure.what()));
    add_found(entry, asked.found);
    journal_.end(id, entry);
    if (const auto* const known = dynamic_cast<const Error*>(&failure)) throw ToldError{*known};
    throw;
  }
}

OperateCall OperateApi::journal_call() {
  const auto serve = [this](Asked& asked, const BlockingThreads::Orders&) {
    if (!asked.after.empty() && !is_stream_id(asked.after))
      return http::problem(problems::bad_parameter, "'after' is the id of an entry");
    const auto entries = journal_.read(asked.after, asked.most);
    auto all = Json::array();
    for (const auto& entry : entries)
      all.add(Json::object({{"id", entry.id},
                            {"at", millisecond_text(entry.at)},
                            {"operator", entry.by},
                            {"action", entry.action},
                            {"target", entry.target},
                            {"detail", entry.detail},
                            {"order", entry.order.empty() ? Json{} : Json{entry.order}},
                            {"amount", entry.amount.empty() ? Json{} : Json::raw(entry.amount)},
                            {"currency", entry.currency.empty() ? Json{} : Json{entry.currency}},
                            {"outcome", entry.outcome}}));
    const bool is_last = entries.size() < asked.most;
    return http::json(
        200, Json::object({{"entries", all}, {"next", is_last ? Json{} : entries.back().id}}));
  };
  return {.method = "GET",
          .path = "/v1/operate/journal",
          .operation = "console_journal",
          .summary = "Who did what, the newest first",
          .has_pages = true,
          .answer = {200, "Entries", R"({"type":"object"})"},
          .asks_database = false,
          .serve = serve};
}

// --- routes ---

void OperateApi::add_call(http::Routes& routes, const OperateCall& call) {
  routes.add({.method = call.method,
              .path = call.path,
              .operation = call.operation,
              .summary = call.summary,
              .parameters = parameters_of(call),
              .request = schema_of(call),
              .answers = {call.answer},
              .problems = problems_of(call),
              .credentials = std::string{ShopKeys::credentials},
              .handler = [this, &call](http::Request&& request, http::Responder&& respond) {
                serve(call, std::move(request), std::move(respond));
              }});
}

http::Handler OperateApi::calls(Serve serve) {
  return [this, serve](http::Request&& request, http::Responder&& respond) {
    (this->*serve)(std::move(request), std::move(respond));
  };
}

void OperateApi::add_logins(http::Routes& routes) {
  using namespace problems;
  routes.add(
      {.method = "POST",
       .path = "/console/login",
       .operation = "log_in",
       .summary = "Gives a browser a cookie for a key of the shop",
       .request = R"({"type":"object","required":["key"],)"
                  R"("properties":{"key":{"type":"string"}}})",
       .answers = {{204, "The cookie", {}}},
       .problems = {&unknown_key, &not_allowed, &bad_body, &not_same_origin, &too_many_logins},
       .handler = calls(&OperateApi::log_in)});
  routes.add({.method = "POST",
              .path = "/console/logout",
              .operation = "log_out",
              .summary = "Takes the cookie away",
              .answers = {{204, "It is gone", {}}},
              .problems = {&not_same_origin},
              .handler = calls(&OperateApi::log_out)});
}

void OperateApi::add_views(http::Routes& routes) {
  using namespace problems;
  struct Row {
    const char* path;
    const char* operation;
    const char* summary;
    const char* media;
    Serve serve;
  };
  constexpr Row rows[] = {
      {"/v1/operate/session", "console_session", "Who the operator is", "application/json",
       &OperateApi::show_session},
      {"/v1/operate/state", "console_state", "How everything stands", "application/json",
       &OperateApi::show_state},
      {"/v1/operate/events", "console_events", "The same each second, as event `state`",
       "text/event-stream", &OperateApi::follow_state}};
  for (const auto& row : rows)
    routes.add({.method = "GET",
                .path = row.path,
                .operation = row.operation,
                .summary = row.summary,
                .answers = {{200, row.summary, R"({"type":"object"})", row.media}},
                .problems = {&unknown_key, &not_allowed, &no_operators, &other_host, &busy},
                .credentials = std::string{ShopKeys::credentials},
                .handler = calls(row.serve)});
}

void OperateApi::add_routes(http::Routes& routes) {
  add_logins(routes);
  add_views(routes);
  for (const auto& call : calls_) add_call(routes, call);
}

}  // namespace sluice::server
