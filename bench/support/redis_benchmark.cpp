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

LoadFigures load(int port, const std::vector<std::string>& arguments) {
  std::string command = fmt::format("redis-benchmark -h 127.0.0.1 -p {} --csv", port);
  for (const auto& argument : arguments) command += " " + quoted(argument);
  const std::unique_ptr<FILE, int (*)(FILE*)> output{
      ::popen((command + " 2>/dev/null").c_str(), "r"), ::pclose};
  if (!output) throw std::runtime_error{"redis-benchmark cannot be started"};
  std::string text;
  char chunk[4096];
  while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, output.get()))
    text.append(chunk, got);
  // "test","rps","avg","min","p50","p95","p99","max" on the first line, the same quoted on the
  // second; the name of the command may hold commas and quotes itself, so the figures are counted
  // from its end.
  std::vector<double> fields;
  const auto line = text.find('\n');
  for (auto at = line == std::string::npos ? line : text.find("\",\"", line);
       at != std::string::npos; at = text.find("\",\"", at + 1))
    fields.push_back(std::atof(text.c_str() + at + 3));
  if (fields.size() < 7) throw std::runtime_error{"redis-benchmark said: " + text};
  const auto* const figures = fields.data() + fields.size() - 7;
  return {.per_second = figures[0], .p50_ms = figures[3], .p99_ms = figures[5]};
}

double redis_benchmark(int port, const std::vector<std::string>& arguments) {
  return load(port, arguments).per_second;
}

}  // namespace sluice::bench
