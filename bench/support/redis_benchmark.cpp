#include "support/redis_benchmark.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace sluice::bench {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return text + "'";
}

}  // namespace

double redis_benchmark(int port, const std::vector<std::string>& arguments) {
  std::string command = fmt::format("redis-benchmark -h 127.0.0.1 -p {} --csv", port);
  for (const auto& argument : arguments) command += " " + quoted(argument);
  const std::unique_ptr<FILE, int (*)(FILE*)> output{
      ::popen((command + " 2>/dev/null").c_str(), "r"), ::pclose};
  if (!output) throw std::runtime_error{"redis-benchmark cannot be started"};
  std::string text;
  char chunk[4096];
  while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, output.get()))
    text.append(chunk, got);
  // "test","rps",... on the first line; "the command","82644.62",... on the second: the second field from the end of
  // the name, which may hold commas and quotes itself.
  const auto line = text.find('\n');
  const auto field = line == std::string::npos ? line : text.find("\",\"", line);
  if (field == std::string::npos) throw std::runtime_error{"redis-benchmark said: " + text};
  return std::atof(text.c_str() + field + 3);
}

}  // namespace sluice::bench
