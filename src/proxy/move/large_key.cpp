#include "proxy/move/large_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace sluice::proxy::move {
namespace {

constexpr std::int64_t elements_a_piece = 500;                   // in a piece
constexpr std::int64_t bytes_a_piece = std::int64_t{256} << 10;  // of a string

class Copy {
 public:
  Copy(GuardedServer& from, GuardedServer& to, int database, const std::string& key,
       const std::function<bool()>& rest)
      : from_(from),
        to_(to),
        database_(database),
        key_(key),
        hidden_(std::string{hidden_prefix} + key),
        rest_(rest) {}

  bool run() {
    there({"DEL", hidden_});
    const auto type = here({"TYPE", key_}).as_text();
    const bool is_whole = type == "string" ? take_string()
                          : type == "list" ? take_list()
                          : type == "set"  ? take_scanned("SSCAN", "SADD", 1)
                          : type == "hash" ? take_scanned("HSCAN", "HSET", 2)
                          : type == "zset" ? take_scanned("ZSCAN", "ZADD", 2)
                                           : false;
    if (!is_whole) return false;
    const auto left = here({"PTTL", key_}).as_integer();
    if (left == -2) {  // its time was over meanwhile
      there({"UNLINK", hidden_});
      return true;
    }
    if (left >= 0) there({"PEXPIRE", hidden_, std::to_string(std::max<std::int64_t>(left, 1))});
    there({"RENAME", hidden_, key_});
    here({"UNLINK", key_});
    return true;
  }

 private:
  using Words = std::initializer_list<std::string_view>;
  Value here(Words words) { return from_.order_in(database_, {words.begin(), words.size()}); }
  Value there(Words words) { return to_.order_in(database_, {words.begin(), words.size()}); }

  void add(std::string_view command, std::vector<std::string_view> items) {
    if (items.empty()) return;
    items.insert(items.begin(), {command, hidden_});
    to_.order_in(database_, items);
  }

  bool take_string() {
    const auto size = here({"STRLEN", key_}).as_integer();
    for (std::int64_t at = 0; at < size; at += bytes_a_piece) {
      const auto piece =
          here({"GETRANGE", key_, std::to_string(at), std::to_string(at + bytes_a_piece - 1)});
      there({"APPEND", hidden_, piece.as_text()});
      if (!rest_()) return false;
    }
    return size != 0;
  }

  bool take_list() {
    const auto size = here({"LLEN", key_}).as_integer();
    for (std::int64_t at = 0; at < size; at += elements_a_piece) {
      const auto piece =
          here({"LRANGE", key_, std::to_string(at), std::to_string(at + elements_a_piece - 1)});
      std::vector<std::string_view> items;
      for (const auto& item : piece.as_items()) items.push_back(item.as_text());
      add("RPUSH", std::move(items));
      if (!rest_()) return false;
    }
    return size != 0;
  }

  /// `parts`: of an element, in the reply and in the command, where the last comes first for ZADD.
  bool take_scanned(std::string_view scan, std::string_view command, std::size_t parts) {
    std::string cursor = "0";
    do {
      const auto reply = here({scan, key_, cursor, "COUNT", std::to_string(elements_a_piece)});
      const auto& found = reply.as_items().at(1).as_items();
      std::vector<std::string_view> items;
      for (std::size_t at = 0; at + parts <= found.size(); at += parts) {
        for (std::size_t part = 0; part < parts; ++part)
          items.push_back(found[at + part].as_text());
        if (command == "ZADD") std::swap(items.back(), items[items.size() - 2]);
      }
      const bool is_hash = command == "HSET";
      const auto fields = is_hash ? every_other(items) : std::vector<std::string_view>{};
      add(command, std::move(items));
      if (is_hash && !take_times(fields)) return false;
      cursor = reply.as_items().at(0).as_text();
      if (!rest_()) return false;
    } while (cursor != "0");
    return true;
  }

  static std::vector<std::string_view> every_other(const std::vector<std::string_view>& items) {
    std::vector<std::string_view> firsts;
    for (std::size_t at = 0; at < items.size(); at += 2) firsts.push_back(items[at]);
    return firsts;
  }

  /// When these fields of a hash end (Redis 7.4). False: it cannot be asked, so that the hash has
  /// to be moved as a whole.
  bool take_times(const std::vector<std::string_view>& fields) {
    if (fields.empty() || !has_times_) return true;
    const auto many = std::to_string(fields.size());
    std::vector<std::string_view> words{"HPEXPIRETIME", key_, "FIELDS", many};
    words.insert(words.end(), fields.begin(), fields.end());
    const auto times = from_.ask_in(database_, words);
    if (times.is_error()) {
      has_times_ = !times.as_text().starts_with("ERR unknown command");
      return !has_times_;
    }
    for (std::size_t at = 0; at < fields.size(); ++at) {
      constexpr std::int64_t none = -1, gone = -2;
      const auto time = times.as_items().at(at).as_integer();
      if (time == gone)
        there({"HDEL", hidden_, fields[at]});
      else if (time != none)
        there({"HPEXPIREAT", hidden_, std::to_string(time), "FIELDS", "1", fields[at]});
    }
    return true;
  }

  GuardedServer &from_, &to_;
  int database_;
  const std::string& key_;
  std::string hidden_;
  const std::function<bool()>& rest_;
  bool has_times_ = true;  // its fields may have; false: the server knows none
};

}  // namespace

bool copy_in_pieces(GuardedServer& from, GuardedServer& to, int database, const std::string& key,
                    const std::function<bool()>& rest) {
  return Copy{from, to, database, key, rest}.run();
}

}  // namespace sluice::proxy::move
