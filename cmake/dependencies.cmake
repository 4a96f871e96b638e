# Everything that is bought, each with the floor that may use it (tests/floors_test checks the includes).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)                    # base and up
find_package(PkgConfig REQUIRED)
pkg_check_modules(lua51cpp REQUIRED IMPORTED_TARGET GLOBAL lua5.1-c++)   # engine
find_package(OpenSSL REQUIRED)                # base (SHA-1), net
find_library(SLUICE_CCTZ cctz REQUIRED)                # number
find_library(SLUICE_HIGHWAYHASH highwayhash REQUIRED)  # bloom
find_library(SLUICE_MURMURHASH murmurhash REQUIRED)    # bloom
find_path(SLUICE_XXHASH xxhash.h REQUIRED)             # bloom; inline

add_library(sluice_cctz INTERFACE)
target_link_libraries(sluice_cctz INTERFACE ${SLUICE_CCTZ})
add_library(sluice_hashes INTERFACE)
target_link_libraries(sluice_hashes INTERFACE ${SLUICE_HIGHWAYHASH} ${SLUICE_MURMURHASH})
add_library(sluice_lua INTERFACE)
target_link_libraries(sluice_lua INTERFACE PkgConfig::lua51cpp)

if(SLUICE_SALE)
  find_library(SLUICE_SOCI_CORE soci_core REQUIRED)        # sale/sql
  find_library(SLUICE_SOCI_SQLITE3 soci_sqlite3 REQUIRED)
  find_package(SQLite3 REQUIRED)
  add_library(sluice_soci INTERFACE)
  target_include_directories(sluice_soci SYSTEM INTERFACE /usr/include/soci)
  target_link_libraries(sluice_soci INTERFACE ${SLUICE_SOCI_SQLITE3} ${SLUICE_SOCI_CORE} SQLite::SQLite3)

  # sale/sql/postgresql.cpp, sale/sql/mariadb.cpp: SOCI's backends by name of their factories, so that nothing is looked for when
  # the program runs.
  find_library(SLUICE_SOCI_POSTGRESQL soci_postgresql REQUIRED)
  find_library(SLUICE_SOCI_MYSQL soci_mysql REQUIRED)
  pkg_check_modules(libpq REQUIRED IMPORTED_TARGET GLOBAL libpq)
  pkg_check_modules(libmariadb REQUIRED IMPORTED_TARGET GLOBAL libmariadb)
  find_package(CURL REQUIRED)  # server/http_client.cpp

  add_library(sluice_database_clients INTERFACE)
  target_link_libraries(sluice_database_clients INTERFACE ${SLUICE_SOCI_POSTGRESQL} ${SLUICE_SOCI_MYSQL} PkgConfig::libpq PkgConfig::libmariadb)
endif()
