#include "lock/chaos/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace sluice::chaos {
namespace {

constexpr std::array<std::string_view, 9> mode_names{
    "exclusive", "shared", "permits", "rate", "set", "count-down", "wait", "number", "order"};

Stamp stamp_of(const std::string& word) { return Stamp{std::stoll(word)}; }

}  // namespace

Stamp stamp() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + Stamp{now.tv_nsec};
}

Journal::Journal(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ < 0) throw std::system_error{errno, std::generic_category(), path.string()};
}

Journal::~Journal() { ::close(file_); }

void Journal::write(const std::string& line) const {
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::system_error{errno, std::generic_category(), "writing a journal"};
}

void Journal::ask(std::uint64_t number, std::string_view name, Mode mode, std::uint64_t permits) {
  write(fmt::format("{} ask {} {} {} {}\n", stamp().count(), number, name,
                    mode_names.at(static_cast<std::size_t>(mode)), permits));
}

void Journal::enter(std::uint64_t number, std::string_view name, std::uint64_t token, Stamp at) {
  write(fmt::format("{} enter {} {} {}\n", at.count(), number, name, token));
}

void Journal::valid(std::uint64_t number, Stamp at) {
  write(fmt::format("{} valid {}\n", at.count(), number));
}

void Journal::leave(std::uint64_t number) {
  write(fmt::format("{} leave {}\n", stamp().count(), number));
}

void Journal::refused(std::uint64_t number) {
  write(fmt::format("{} refused {}\n", stamp().count(), number));
}

void Journal::fail(std::uint64_t number, std::string_view why) {
  std::string word{why};
  for (char& c : word)
    if (c == ' ') c = '-';
  write(fmt::format("{} fail {} {}\n", stamp().count(), number, word));
}

void Sections::read(const std::filesystem::path& path, const std::string& who) {
  std::ifstream input{path};
  if (!input) return;  // its process has not begun
  File& file = files_[who];
  input.seekg(file.read);
  for (std::string line; std::getline(input, line) && !input.eof();) {
    file.read += static_cast<std::streamoff>(line.size()) + 1;
    take(file, who, line);
  }
}

void Sections::take(File& file, const std::string& who, const std::string& line) try {
  Words words;
  std::istringstream input{line};
  for (auto& word : words) input >> word;
  if (words[1] == "ask")
    ask(file, who, words);
  else
    change(file, words);
} catch (const std::logic_error&) {  // of std::stoll and of at()
  throw std::runtime_error{fmt::format("not a line of a journal: '{}'", line)};
}

/// A MultiLock has its names as one word: "a+b".
void Sections::ask(File& file, const std::string& who, const Words& words) {
  const auto& [at, verb, number, names, mode, permits] = words;
  std::size_t kind = 0;
  while (mode_names.at(kind) != mode) ++kind;
  const Stamp asked = stamp_of(at);
  const std::uint64_t many = std::stoull(permits);
  std::istringstream each{names};
  for (std::string name; std::getline(each, name, '+');) {
    file.open[std::stoull(number)].push_back(all_.size());
    all_.push_back({.who = who + '/' + number,
                    .name = name,
                    .mode = static_cast<Mode>(kind),
                    .permits = many,
                    .asked = asked});
  }
}

void Sections::change(File& file, const Words& words) {
  const Stamp at = stamp_of(words[0]);
  const std::string& verb = words[1];
  const auto open = file.open.find(std::stoull(words[2]));
  if (open == file.open.end()) throw std::out_of_range{"it did not ask"};
  for (const auto place : open->second) {
    Section& section = all_[place];
    if (verb == "enter" && section.name == words[3]) {
      section.entered = true;
      section.came = section.valid = at;
      section.token = std::stoull(words[4]);
    } else if (verb == "valid") {
      section.valid = std::max(section.valid, at);
    } else if (verb == "leave") {
      section.left = at;
    } else if (verb == "refused" || verb == "fail") {
      if (!section.came) section.came = at;
    } else if (verb != "enter") {
      throw std::out_of_range{verb};
    }
  }
  if (verb == "fail") ++failures_[words[3]];
  if (verb != "enter" && verb != "valid") file.open.erase(open);
}

}  // namespace sluice::chaos
