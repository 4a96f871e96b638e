#include "port/commands_file.hpp"

#include <fmt/format.h>

#include <string>

#include "resp/request_parser.hpp"
#include "sluice/error.hpp"

namespace sluice::port {

LoadedCommands execute_commands(
    engine::OpenedEngine& opened, const std::function<std::size_t(std::span<char> into)>& read,
    const std::function<void(std::uint64_t, std::string_view, std::string_view)>& refused) {
  constexpr std::size_t piece = 64 << 10;
  using State = resp::RequestParser::State;
  LoadedCommands loaded;
  resp::RequestParser parser;
  engine::Session session;
  std::string buffer;
  std::uint64_t position = 0;
  for (std::size_t got = 1; got != 0;) {
    const auto before = buffer.size();
    buffer.resize(before + piece);
    got = read(std::span{buffer}.subspan(before));
    buffer.resize(before + got);
    std::size_t used = 0;
    {
      engine::LockedEngine::Section section{opened.engine()};
      for (; parser.parse(std::string_view{buffer}.substr(used)) == State::complete;
           used += parser.size()) {
        const auto words = parser.words();
        if (words.empty()) continue;
        engine::ValueReply reply;
        position = section.execute(session, words, nullptr, reply).position;
        ++loaded.executed;
        const auto value = reply.take();
        if (!value.is_error()) continue;
        ++loaded.refused;
        refused(loaded.executed, words.front(), value.as_text());
      }
    }
    buffer.erase(0, used);
    if (parser.state() == State::bad) break;
  }
  if (auto* const committer = opened.committer()) committer->commit(position);
  if (parser.state() == State::bad)
    throw Error{Errc::corrupt,
                fmt::format("behind {} commands: {}", loaded.executed, parser.error())};
  if (!buffer.empty())
    throw Error{Errc::corrupt,
                fmt::format("the last command is not whole: {} were executed", loaded.executed)};
  return loaded;
}

}  // namespace sluice::port
