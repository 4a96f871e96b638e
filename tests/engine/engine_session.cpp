#include "engine/engine_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sluice::engine {
namespace {

/// Reads what stands behind a backslash at text[i], and leaves `i` on its last character.
char escaped(std::string_view text, std::size_t& i) {
  switch (text[i]) {
    case 'n': return '\n';
    case '0': return '\0';
    case 'x': {
      unsigned value = 0;
      std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      i += 2;
      return static_cast<char>(value);
    }
    default: return text[i];
  }
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return c > ' ' && c != '"' && c != '\\' && c != 0x7f;
  });
  if (plain) return word;
  std::string text = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte >= ' ' && byte < 0x7f && c != '"' && c != '\\' ? std::string(1, c)
                                                                : fmt::format("\\x{:02x}", byte);
  }
  return text + '"';
}

}  // namespace

Line words_of(std::string_view text) {
  Line words;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    std::string word;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        word += text[i] == '\\' ? escaped(text, ++i) : text[i];
    } else {
      for (; i < text.size() && text[i] != ' '; ++i) word += text[i];
    }
    words.push_back(std::move(word));
  }
  return words;
}

std::string text_of(const Line& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

Value EngineSession::run(const Line& words) {
  const std::vector<std::string_view> views{words.begin(), words.end()};
  Context context{engine, session, now_us};
  ValueReply reply{session.protocol};
  engine.execute(context, views, reply);
  effects = std::move(context.effects());
  signalled.clear();
  for (auto& [database, key] : context.signalled()) signalled.push_back(std::move(key));
  blocks = std::move(context.blocks());
  published = std::move(context.published());
  return reply.take();
}

std::string EngineSession::effects_text() const {
  std::string text;
  for (const auto& effect : effects) text += (text.empty() ? "" : "; ") + text_of(effect);
  return text;
}

namespace {

std::string content_of(EngineSession& session, const std::string& key, const std::string& type) {
  struct Row {
    std::string_view type;
    Line command;
    bool ordered;
  };
  const Row rows[] = {{"string", {"GET", key}, true},
                      {"hash", {"HGETALL", key}, false},
                      {"list", {"LRANGE", key, "0", "-1"}, true},
                      {"set", {"SMEMBERS", key}, false},
                      {"zset", {"ZRANGE", key, "0", "-1", "WITHSCORES"}, true}};
  for (const auto& row : rows) {
    if (row.type != type) continue;
    auto value = session.run(row.command);
    if (row.ordered || !value.is_aggregate()) return to_string(value);
    // Field and value are sorted as one.
    const std::size_t step = value.type() == Value::Type::map ? 2 : 1;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < value.as_items().size(); i += step)
      parts.push_back(to_string(value.as_items()[i]) +
                      (step == 2 ? "=" + to_string(value.as_items()[i + 1]) : ""));
    std::ranges::sort(parts);
    return fmt::format("{}", fmt::join(parts, " "));
  }
  return "?";
}

}  // namespace

namespace {

/// `tell(name, type)` gives the line of a key.
template <class Tell>
std::string all_keys(EngineSession& session, Tell&& tell) {
  std::vector<std::string> lines;
  const int selected = session.session.database;
  for (session.session.database = 0; session.session.database < Engine::databases;
       ++session.session.database) {
    const auto keys = session.run("KEYS *");
    for (const auto& key : keys.as_items()) {
      const auto& name = key.as_text();
      const auto type = session.run(Line{"TYPE", name}).as_text();
      lines.push_back(fmt::format("{}:{} {} {} @{}", session.session.database, quoted(name), type,
                                  tell(name, type),
                                  session.run(Line{"PEXPIRETIME", name}).as_integer()));
    }
  }
  session.session.database = selected;
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

std::string dump(EngineSession& session) {
  return all_keys(session, [&](const std::string& name, const std::string& type) {
    return content_of(session, name, type);
  });
}

std::string state_of(EngineSession& session) {
  return all_keys(session, [&](const std::string& name, const std::string& type) {
    if (type == "stream")
      return to_string(session.run(Line{"XINFO", "STREAM", name, "FULL", "COUNT", "0"}));
    const auto encoding = session.run(Line{"OBJECT", "ENCODING", name}).as_text();
    auto text = encoding + ' ' + content_of(session, name, type);
    if (type == "string")
      text += session.run(Line{"GET", name}).as_text();  // also beyond 200 bytes
    if (encoding != "listpack") return text;
    if (type == "hash") text += to_string(session.run(Line{"HGETALL", name}));
    if (type == "set") text += to_string(session.run(Line{"SMEMBERS", name}));
    return text;
  });
}

}  // namespace sluice::engine
