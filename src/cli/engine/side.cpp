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
  } else if (value.type() == Value::Type::number) {
    out += fmt::format("{}", value.as_number());
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

/// How the value of each type is read: a command, and what follows the key.
struct Reading {
  std::string_view type;
  std::vector<std::string_view> words;
  std::size_t parts = 0;  ///< of an element, where elements have no order
};
const Reading readings[] = {{"string", {"GET"}},
                            {"list", {"LRANGE", "0", "-1"}},
                            {"set", {"SMEMBERS"}, 1},
                            {"hash", {"HGETALL"}, 2},
                            {"zset", {"ZRANGE", "0", "-1", "WITHSCORES"}},
                            {"stream", {"XINFO", "STREAM", "FULL", "COUNT", "0"}},
                            {"", {"DUMP"}}};  // a module's

const Reading& reading_of(const std::string& type) {
  const auto* const last = std::end(readings) - 1;
  return *std::find_if(std::begin(readings), last, [&](auto& row) { return row.type == type; });
}

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
    auto words = reading_of(contents.back().type).words;
    words.insert(words.begin() + 1, keys[i]);
    if (words[0] == "XINFO") std::swap(words[1], words[2]);
    batch.add(words);
  }
  const auto values = in(database).run(std::move(batch)).get();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto& content = contents[i];
    const auto parts = reading_of(content.type).parts;
    if (!content.is_there())
      content.ends_at = -1;
    else if (parts > 0 && values[i].is_aggregate())
      content.text = sorted(values[i], parts);
    else
      write(content.text, values[i]);  // an error, too: it was changed meanwhile, and is told
  }
  return contents;
}

}  // namespace sluice::cli
