#include "engine/log/dump.hpp"

#include <algorithm>
#include <vector>

namespace sluice::engine::test {
namespace {

std::string flat(const Value& value) {
  if (value.is_aggregate()) {
    std::string text = "[";
    for (const auto& item : value.as_items()) text += flat(item) + ",";
    return text + "]";
  }
  if (value.is_text()) return value.as_text();
  return to_string(value);
}

/// Items by `together`, in the order of their text.
std::string sorted(const Value& value, std::size_t together) {
  std::vector<std::string> parts;
  const auto& items = value.as_items();
  for (std::size_t i = 0; i < items.size(); i += together) {
    std::string part;
    for (std::size_t k = i; k < std::min(i + together, items.size()); ++k)
      part += flat(items[k]) + "=";
    parts.push_back(part);
  }
  std::ranges::sort(parts);
  std::string text;
  for (const auto& part : parts) text += part + ",";
  return text;
}

class Dumper {
 public:
  explicit Dumper(const Ask& ask) : ask_(ask) {}

  std::string key(std::string_view key) {
    const std::string type = flat(ask({"TYPE", key}));
    return type + " " + flat(ask({"PEXPIRETIME", key})) + " " + content(type, key);
  }

 private:
  Value ask(std::initializer_list<std::string_view> words) {
    return ask_(std::span{words.begin(), words.size()});
  }

  std::string content(const std::string& type, std::string_view key) {
    if (type == "string") return flat(ask({"GET", key}));
    if (type == "hash") return sorted(ask({"HGETALL", key}), 2);
    if (type == "list") return flat(ask({"LRANGE", key, "0", "-1"}));
    if (type == "set") return sorted(ask({"SMEMBERS", key}), 1);
    if (type == "zset") return zset(ask({"ZRANGE", key, "0", "-1"}), key);
    return stream(key);
  }

  /// Whether a score is 0 or -0 hangs on how the set is stored.
  std::string zset(const Value& members, std::string_view key) {
    std::string text;
    for (const auto& member : members.as_items())
      text += member.as_text() + "=" +
              std::to_string(0 + ask({"ZSCORE", key, member.as_text()}).as_number()) + ",";
    return text;
  }

  std::string stream(std::string_view key) {
    std::string text = flat(ask({"XRANGE", key, "-", "+"}));
    const Value info = ask({"XINFO", "STREAM", key});
    for (const auto* const field : {"last-generated-id", "max-deleted-entry-id", "entries-added"})
      text += std::string{" "} + field + "=" + flat(find(info, field));
    const Value groups = ask({"XINFO", "GROUPS", key});
    for (const auto& group : groups.as_items()) {
      const auto name = flat(find(group, "name"));
      text += " group " + name + " at " + flat(find(group, "last-delivered-id")) + " read " +
              flat(find(group, "entries-read"));
      const Value pending = ask({"XPENDING", key, name, "-", "+", "1000000"});
      const Value consumers = ask({"XINFO", "CONSUMERS", key, name});
      for (const auto& entry : pending.as_items())
        text += " " + flat(entry.as_items()[0]) + ":" + flat(entry.as_items()[1]) + ":" +
                flat(entry.as_items()[3]);
      text += " consumers";
      for (const auto& consumer : consumers.as_items()) text += " " + flat(find(consumer, "name"));
    }
    return text;
  }

  static const Value& find(const Value& map, std::string_view name) {
    static const Value none;
    const auto& items = map.as_items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      if (items[i].as_text() == name) return items[i + 1];
    return none;
  }

  const Ask& ask_;
};

}  // namespace

Dump dump(const Ask& ask) {
  Dump all;
  Dumper dumper{ask};
  const std::string_view keys[] = {"KEYS", "*"};
  const Value names = ask(keys);
  for (const auto& key : names.as_items()) all[key.as_text()] = dumper.key(key.as_text());
  const std::string_view list[] = {"FUNCTION", "LIST", "WITHCODE"};
  const Value libraries = ask(list);
  if (libraries.is_aggregate() && !libraries.as_items().empty())
    all["(libraries)"] = sorted(libraries, 1);
  return all;
}

Dump dump(Store& store) {
  return dump([&](std::span<const std::string_view> words) { return store.run(words).get(); });
}

namespace {

/// Where two texts begin to differ, with a little of what is before.
std::string around(const std::string& found, const std::string& expected) {
  const auto place =
      static_cast<std::size_t>(std::ranges::mismatch(found, expected).in1 - found.begin());
  const auto from = place - std::min<std::size_t>(place, 20);
  return "..." + found.substr(from, 200) + "\n  instead of ..." + expected.substr(from, 200);
}

}  // namespace

std::string difference(const Dump& found, const Dump& expected) {
  std::string text;
  for (const auto& [key, content] : expected)
    if (!found.contains(key)) text += "missing: " + key + "\n";
  for (const auto& [key, content] : found) {
    const auto other = expected.find(key);
    if (other == expected.end())
      text += "too much: " + key + " " + content + "\n";
    else if (other->second != content)
      text += key + " is " + around(content, other->second) + "\n";
  }
  return text;
}

}  // namespace sluice::engine::test
