/// Which databases a program can open. A program links one of two files: sqlite_alone.cpp, which
/// needs no client library of a server, or all_databases.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sale/sql/dialect.hpp"

namespace sluice::sale {

struct Scheme {
  std::string_view prefix;
  SqlDialect (*dialect)(const std::string& url);
};

std::span<const Scheme> schemes();
/// What an unknown scheme is told: which there are.
std::string_view known_schemes();

SqlDialect sqlite_dialect(const std::string& url);
SqlDialect postgresql_dialect(const std::string& url);
SqlDialect mariadb_dialect(const std::string& url);

}  // namespace sluice::sale
