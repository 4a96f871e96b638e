#include "cli/engine/side.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "base/integer.hpp"
#include "base/url.hpp"
#include "cli/doctor/deployment.hpp"
#include "sluice/open.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;  // for a large value

OpenOptions options() { return {.name = "sluice-move", .command_timeout = patience}; }

bool names_a_database(const Url& url) {
  if (url.query.contains("db")) return true;
  if (url.scheme.ends_with("+unix") || url.scheme == "embedded") return false;
  return url.segments.size() > (url.scheme.ends_with("+sentinel") ? 1 : 0) &&
         !url.segments.back().empty();
}

/// The fields of XINFO STREAM that tell how a server keeps it, and what it has seen of consumers.
constexpr std::string_view unlike[] = {
    "radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time", "lag", "pel-count"};

void write(std::string& out, std::string_view text) {
  out += fmt::format("{}:", text.size());
  out += text;
}

void write(std::string& out, const Value& value) {
  if (value.type() == Value::Type::map) {
    const auto& items = value.as_items();
    for (std::size_t at = 0; at + 1 < items.size(); at += 2) {
      if (std::ranges::find(unlike, items[at].as_text()) != std::end(unlike)) continue;
      write(out, items[at]);
      write(out, items[at + 1]);
    }
  } else if (value.is_aggregate()) {
    out += fmt::format("*{}", value.as_items().size());
    for (const auto& item : value.as_items()) write(out, item);
  } else if (value.is_null()) {
    out += '-';
  } else if (value.type() == Value::Type::integer) {
    write(out, std::to_string(value.as_integer()));
  } else {
    write(out, value.as_text());
  }
}

/// What has no order gets one.
std::string sorted(const Value& value, std::size_t parts) {
  std::vector<std::string> elements;
  const auto& items = value.as_items();
  for (std::size_t at = 0; at + parts <= items.size(); at += parts) {
    write(elements.emplace_back(), items[at]);
    if (parts == 2) write(elements.back(), items[at + 1]);
  }
  std::ranges::sort(elements);
  return fmt::format("{}", fmt::join(elements, ""));
}

std::string text_of(const std::string& type, const Value& value) {
  if (type == "set") return sorted(value, 1);
  if (type == "hash") return sorted(value, 2);
  std::string text;
  if (type != "zset") return write(text, value), text;
  const auto take = [&](const Value& member, const Value& score) {
    write(text, member);
    text += fmt::format("{}", score.as_number());
  };
  const auto& items = value.as_items();
  for (std::size_t at = 0; at < items.size(); ++at) {
    if (items[at].is_aggregate())  // RESP3
      take(items[at].as_items().at(0), items[at].as_items().at(1));
    else if (at + 1 < items.size())
      take(items[at], items[at + 1]), ++at;
  }
  return text;
}

void add_reading(Batch& batch, const std::string& type, const std::string& key) {
  if (type == "string") batch.add({"GET", key});
  if (type == "list") batch.add({"LRANGE", key, "0", "-1"});
  if (type == "set") batch.add({"SMEMBERS", key});
  if (type == "hash") batch.add({"HGETALL", key});
  if (type == "zset") batch.add({"ZRANGE", key, "0", "-1", "WITHSCORES"});
  if (type == "stream") batch.add({"XINFO", "STREAM", key, "FULL", "COUNT", "0"});
}

constexpr std::string_view readable[] = {"string", "list", "set", "hash", "zset", "stream"};

}  // namespace

Value checked(const Value& reply) {
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  return reply;
}

// --- what changes ---

Tail::Tail(Store& master) : master_(master) {
  listener_ = master_.track("", [this](const Message& message) {
    const std::lock_guard lock{mutex_};
    if (message.kind == Message::Kind::published) return keys_.insert(message.payload), void();
    refusal_ = message.kind == Message::Kind::lost ? message.payload : "";
    ++gaps_;
    told_.notify_all();
  });
  wait(gaps_, 0);
}

void Tail::wait(const std::uint64_t& count, std::uint64_t most) {
  std::unique_lock lock{mutex_};
  const bool has_come =
      told_.wait_for(lock, patience, [&] { return count > most || !refusal_.empty(); });
  if (!refusal_.empty())
    throw Error{Errc::connection,
                fmt::format("{} does not tell which keys change: {}; --still moves without that, "
                            "where no program writes",
                            master_.describe(), refusal_)};
  if (!has_come) throw Error{Errc::timeout, master_.describe() + " says nothing"};
}

std::set<std::string> Tail::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(keys_, {});
}

/// A tracker that is added later is told of its beginning in its place among the messages. The
/// second time: a thread of the engine's port may have answered before it has read its letters.
void Tail::settle() {
  for (int round = 0; round < 2; ++round) {
    std::uint64_t before = 0;
    {
      const std::lock_guard lock{mutex_};
      before = settled_;
    }
    const auto later = master_.track("", [this](const Message& message) {
      const std::lock_guard lock{mutex_};
      if (message.kind != Message::Kind::published) ++settled_;
      told_.notify_all();
    });
    wait(settled_, before);
  }
}

std::uint64_t Tail::gaps() {
  const std::lock_guard lock{mutex_};
  return gaps_;
}

// --- a store ---

Side::Side(const std::string& url, Role role) : url_(url) {
  const Url parsed = parse_url(url);
  if (names_a_database(parsed))
    throw Error{Errc::bad_argument, "all databases move: leave the database out of the URL"};
  if (parsed.scheme == "embedded") url_ = serve_folder(parsed.path, role);
  if (parsed.scheme.ends_with("+cluster")) {
    servers_.emplace(url, options());
    find_masters();
  }
  name_ = parsed.scheme == "embedded" ? "embedded:" + parsed.path : in(0).describe();
}

std::string Side::serve_folder(const std::string& path, Role role) {
  if (!path.starts_with('/'))
    throw Error{Errc::bad_argument, "embedded: wants a folder here: embedded:/var/lib/app"};
  if (role == Role::source && !std::filesystem::is_directory(path))
    throw Error{Errc::bad_argument, fmt::format("there is no folder {}", path)};
  const auto socket = fmt::format("{}/{}", path, engine::own_socket);
  try {
    opened_ = engine::OpenedEngine::open({.path = path, .fsync = engine::Fsync::everysec});
    port::PortSettings settings;
    settings.listen.push_back({{.host = "", .port = 0, .unix_path = socket}});
    port_ = std::make_unique<port::Port>(*opened_, std::move(settings));
  } catch (const Error& error) {
    if (error.errc() != Errc::in_use || !std::filesystem::exists(socket)) throw;
  }
  std::string url = "redis+unix://";
  for (const auto part : std::views::split(socket, '/') | std::views::drop(1))
    url += "/" + percent_encoded(std::string_view{part});
  return url;
}

void Side::find_masters() {
  const auto said = ask_nodes(*servers_);
  if (said.map.uncovered() > 0)
    throw Error{Errc::connection, fmt::format("{} slots of the cluster have no master that answers",
                                              said.map.uncovered())};
  for (const auto& node : said.map.nodes())
    if (said.map.has_slots(node) && node.endpoint)
      nodes_.push_back(servers_->open_server(*node.endpoint));
}

Store& Side::master(std::size_t number, int database) {
  return is_cluster() ? *nodes_[number] : in(database);
}

Store& Side::in(int database) {
  auto& store = stores_[database];
  if (!store) {
    const auto setting = fmt::format("{}db={}", url_.contains('?') ? '&' : '?', database);
    store = open(database == 0 ? url_ : url_ + setting, options());
  }
  return *store;
}

std::map<int, std::int64_t> Side::sizes() {
  std::map<int, std::int64_t> sizes;
  for (std::size_t number = 0; number < masters(); ++number) {
    const auto info = master(number).run({"INFO", "keyspace"}).get().as_text();
    for (auto at = info.find("\ndb"); at != std::string::npos; at = info.find("\ndb", at + 1)) {
      const std::string_view line = std::string_view{info}.substr(at + 3);
      sizes[leading_number<int>(line)] +=
          leading_number<std::int64_t>(line.substr(line.find("keys=") + 5));
    }
  }
  return sizes;
}

std::vector<Content> Side::contents(int database, std::span<const std::string> keys) {
  Batch first;
  for (const auto& key : keys) first.add({"TYPE", key}).add({"PEXPIRETIME", key});
  const auto told = in(database).run(std::move(first)).get();
  std::vector<Content> contents;
  Batch batch;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    contents.push_back({checked(told[2 * i]).as_text(), {}, checked(told[2 * i + 1]).as_integer()});
    const auto& type = contents.back().type;
    if (std::ranges::find(readable, type) != std::end(readable))
      add_reading(batch, type, keys[i]);
    else
      batch.add({"DUMP", keys[i]});  // of a module
  }
  const auto values = in(database).run(std::move(batch)).get();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto& content = contents[i];
    if (content.is_there() && values[i].is_error())
      content.text = values[i].as_text();  // it was changed meanwhile, and is told
    else if (content.is_there())
      content.text = text_of(content.type, values[i]);
    if (!content.is_there()) content.ends_at = -1;
  }
  return contents;
}

}  // namespace sluice::cli
