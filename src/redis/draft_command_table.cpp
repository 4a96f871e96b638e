// A stand-in until resp/command_table.cpp is there.
#include "resp/command_table.hpp"

#include <algorithm>
#include <string>

namespace sluice::resp {

const CommandSpec* find_command(std::string_view name) noexcept {
  static constexpr CommandSpec rows[] = {
      {"get", 2, flag_readonly, 1, 1, 1, 0},     {"blpop", -3, flag_write | flag_blocking, 1, -2, 1, 1},
      {"xreadgroup", -7, flag_write | flag_blocking, 0, 0, 0, 2},
      {"select", 2, flag_stateful, 0, 0, 0, 3},  {"multi", 1, flag_stateful, 0, 0, 0, 4},
      {"subscribe", -2, flag_stateful | flag_pubsub, 0, 0, 0, 5},
      {"time", 1, flag_fast, 0, 0, 0, 6},
  };
  std::string lower{name};
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  for (const auto& row : rows)
    if (row.name == lower) return &row;
  return nullptr;
}

}  // namespace sluice::resp
