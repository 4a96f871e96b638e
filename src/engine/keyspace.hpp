/// One database: names to objects, each with an optional time of expiry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::engine {

class Hash;       // hash.hpp
class List;       // list.hpp
class Set;        // set.hpp
class SortedSet;  // sorted_set.hpp
class Stream;     // stream.hpp

using Object = std::variant<std::string, std::unique_ptr<Hash>, std::unique_ptr<List>, std::unique_ptr<Set>,
                            std::unique_ptr<SortedSet>, std::unique_ptr<Stream>>;

/// As TYPE answers: "string", "hash", "list", "set", "zset", "stream".
std::string_view type_name(const Object& object) noexcept;

class Keyspace {
 public:
  static constexpr std::int64_t never = -1;

  Keyspace();
  ~Keyspace();

  /// Null: no such key, or it is past its time at `now_ms` (it is deleted then, and reported to take_expired()).
  /// The pointer is good until the next call that adds or removes keys.
  Object* find(std::string_view key, std::int64_t now_ms);
  /// Inserts or replaces; the expiry is cleared.
  Object& put(std::string_view key, Object object);
  bool erase(std::string_view key);
  std::int64_t expiry_ms(std::string_view key) const;  ///< `never` where there is none or no such key
  void set_expiry_ms(std::string_view key, std::int64_t at_ms);

  std::size_t size() const noexcept;
  void clear();
  /// SCAN: calls `visit` for some keys and gives the next cursor, 0 at the end. Keys that are there all the time are
  /// visited at least once, however the table grows (reverse-binary cursor, Pieter Noordhuis, Redis).
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit);

  /// Keys that find() has deleted because their time was over, since the last call; each is to be logged as DEL.
  std::vector<std::string> take_expired();

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

}  // namespace sluice::engine
