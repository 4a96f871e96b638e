/// Who may include what: the table of docs/architecture.md as the test reads it. To change the
/// architecture, change both.
#pragma once

#include <array>
#include <string_view>

namespace sluice::floors {

/// A folder of src/ (or one of the programs beside it) and the folders that it may include besides
/// itself.
struct Folder {
  std::string_view name;
  std::string_view may_include;  // words
};

inline constexpr std::array folders{
    // 0
    Folder{"base", ""},
    // 1
    Folder{"resp", "base"},
    // 2
    Folder{"store", "resp base"},
    Folder{"net", "base"},
    Folder{"loop", "net base"},
    Folder{"topology", "resp base"},
    // 3: what is promised, and where it runs
    Folder{"lock", "store base"},
    Folder{"number", "store base"},
    Folder{"id", "store base"},
    Folder{"token", "base"},
    Folder{"room", "store base token"},
    Folder{"bloom", "store base"},
    Folder{"cache", "store base"},
    Folder{"sale", "store base number id"},
    Folder{"engine", "store resp base"},
    Folder{"redis", "store resp net topology base"},
    Folder{"http", "loop net base"},
    // 4
    Folder{"open", "engine redis store resp net topology base"},
    Folder{"front", "resp base"},
    Folder{"proxy", "front resp loop net topology base"},
    Folder{"port", "front engine http resp loop net base"},
    Folder{"server", "sale room token lock number id bloom store http net base"},
    // 5
    Folder{"cli", "public server loop net proxy port engine open topology base"},
    Folder{"examples", "public"},
    // Public headers show nothing of src/, nor of a library.
    Folder{"public", ""},
};

/// A room within a folder, and the rooms of that folder that its files may include besides their
/// own.
struct Room {
  std::string_view path;
  std::string_view may_include;  // words
};

/// A folder that is listed here lists all its rooms; files beside them are its door, which may
/// include every room, and which no room includes.
inline constexpr std::array rooms{
    Room{"engine/types", ""},
    Room{"engine/core", "types"},
    Room{"engine/lua", "core types"},
    Room{"engine/commands", "lua core types rdb"},
    Room{"engine/rdb", ""},
    Room{"engine/log", "rdb"},
    Room{"engine/embedded", "commands lua core types log rdb"},
};

/// The floor that a public header stands on: include/sluice/<noun>.hpp may include what that folder
/// may, publicly.
struct Noun {
  std::string_view name;
  std::string_view folder;
};

inline constexpr std::array nouns{
    Noun{"clock", "base"},
    Noun{"error", "base"},
    Noun{"log", "base"},
    Noun{"metrics", "base"},
    Noun{"value", "base"},  // what every floor speaks; it needs no more than Error
    Noun{"standard", "base"},
    Noun{"expected", "base"},
    Noun{"store", "store"},
    Noun{"durability", "store"},
    Noun{"task", "store"},
    Noun{"when_all", "store"},
    Noun{"store_pointer", "base"},
    Noun{"held", "lock"},
    Noun{"lock_info", "lock"},
    Noun{"mutex", "lock"},
    Noun{"fair_mutex", "lock"},
    Noun{"shared_mutex", "lock"},
    Noun{"multi_lock", "lock"},
    Noun{"quorum_lock", "lock"},
    Noun{"semaphore", "lock"},
    Noun{"latch", "lock"},
    Noun{"rate_limiter", "lock"},
    Noun{"permit_semaphore", "lock"},
    Noun{"fencing", "lock"},
    Noun{"lock_watch", "lock"},
    Noun{"exclusive_lock", "lock"},
    Noun{"lock", "lock"},  // all of them
    Noun{"number", "number"},
    Noun{"id", "id"},
    Noun{"token", "token"},
    Noun{"waiting_room", "room"},
    Noun{"bloom_filter", "bloom"},
    Noun{"shared_bloom_filter", "bloom"},
    Noun{"cache_guard", "cache"},
    Noun{"sale", "sale"},
    Noun{"bucketed_sale", "sale"},
    Noun{"order_store", "sale"},
    Noun{"order_worker", "sale"},
    Noun{"order_payments", "sale"},
    Noun{"order_messages", "sale"},
    Noun{"payment_provider", "sale"},
    Noun{"webhook", "sale"},
    Noun{"sale_audit", "sale"},
    Noun{"sale_recovery", "sale"},
    Noun{"open", "open"},
    Noun{"sluice", "open"},  // all of them
};

/// A library that is bought, or a part of the system that is not for everybody, and the paths that
/// may include it. Paths are words that begin a path below src/ or are a program's folder.
struct Library {
  std::string_view header;   // what the included name begins with
  std::string_view allowed;  // words; "*": anywhere
};

inline constexpr std::array libraries{
    Library{"fmt/", "*"},
    Library{"openssl/", "base/base64 base/sha1 base/sha256 net/ proxy/hash/"},
    Library{"curl/", "server/http_client"},
    Library{"boost/asio", "examples/asio_threads"},
    Library{"boost/beast", "http/reader"},
    Library{"lua", "engine/"},
    Library{"lauxlib.h", "engine/"},
    Library{"cctz/", "number/"},
    Library{"highwayhash/", "bloom/"},
    Library{"murmurhash.h", "bloom/"},
    Library{"xxhash.h", "bloom/"},
    Library{"soci", "sale/sql/ examples/fenced_books"},
    Library{"postgresql/", "sale/sql/postgresql"},
    Library{"mysql/", "sale/sql/mariadb"},
    Library{"sqlite3", "sale/sql/ examples/cached_users examples/fenced_books"},
    Library{"nlohmann/", "base/json_value proxy/"},
    Library{"yaml-cpp/", "proxy/"},
    Library{"spdlog/", "proxy/ server/ cli/"},
    Library{"prometheus/", "proxy/ server/"},
    // The left side of floor 3 promises to use no socket.
    Library{"sys/socket.h", "net/ redis/ http/ proxy/ server/ cli/ sale/sql/"},
    Library{"netinet/", "net/ redis/ http/ proxy/ server/ cli/"},
    Library{"arpa/", "net/ redis/ http/ proxy/ server/ cli/"},
    Library{"netdb.h", "net/ redis/ http/ proxy/ server/ cli/"},
    // The system's other folders of headers.
    Library{"sys/", "*"},
    Library{"linux/", "*"},
};

/// The one file that reads the clocks of the machine.
inline constexpr std::string_view clock_reader = "src/base/clock.cpp";

/// The one that starts threads, for all but programs.
inline constexpr std::string_view thread_starter = "src/base/thread.hpp";

}  // namespace sluice::floors
