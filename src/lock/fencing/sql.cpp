#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lock/hold/steps.hpp"
#include "sluice/fencing.hpp"

namespace sluice::fenced_sql {
namespace {

constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

/// A name as SQL takes it without quotes, a schema in front allowed.
void check_identifier(std::string_view name) {
  const bool well_formed = !name.empty() && name.size() <= 255 &&
                           name.find_first_not_of(letters) == name.npos &&
                           std::string_view{"0123456789."}.find(name.front()) == name.npos;
  if (!well_formed)
    throw Error{Errc::bad_argument,
                lock::quoted(std::string{name}) + " is no name of a table or column in SQL"};
}

void check_text(const char* what, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    throw Error{Errc::bad_argument, fmt::format("a fenced statement needs {}", what)};
}

}  // namespace

std::string update(std::string_view table, std::string_view assignments, std::string_view where) {
  check_identifier(table);
  check_text("assignments", assignments);
  check_text("a condition that says which rows", where);
  return fmt::format("UPDATE {} SET {}, {} WHERE ({}) AND {}", table, assignments, assignment,
                     where, condition);
}

std::string upsert(std::string_view table, std::span<const std::string_view> keys,
                   std::span<const std::string_view> columns) {
  check_identifier(table);
  std::ranges::for_each(keys, check_identifier);
  std::ranges::for_each(columns, check_identifier);
  if (keys.empty() || columns.empty())
    throw Error{Errc::bad_argument, "a fenced upsert needs columns, some of them its key"};

  std::vector<std::string_view> all(keys.begin(), keys.end());
  all.insert(all.end(), columns.begin(), columns.end());
  all.push_back("token");
  std::string changes;
  for (const auto changed : std::span{all}.subspan(keys.size()))
    changes += fmt::format("{}{} = excluded.{}", changes.empty() ? "" : ", ", changed, changed);
  return fmt::format(
      "INSERT INTO {0} ({1}) VALUES (:{2}) ON CONFLICT ({3}) DO UPDATE SET {4} "
      "WHERE {0}.token <= excluded.token",
      table, fmt::join(all, ", "), fmt::join(all, ", :"), fmt::join(keys, ", "), changes);
}

std::string upsert(std::string_view table, std::initializer_list<std::string_view> keys,
                   std::initializer_list<std::string_view> columns) {
  return upsert(table, std::span{keys.begin(), keys.size()},
                std::span{columns.begin(), columns.size()});
}

}  // namespace sluice::fenced_sql
