#include "engine/rdb/snapshot_reader.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/integer.hpp"
#include "engine/rdb/packed.hpp"
#include "engine/rdb/snapshot_fields.hpp"
#include "engine/rdb/stream_reader.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

[[noreturn]] void refuse_content(std::string what) {
  throw Error{Errc::bad_argument, std::move(what)};
}

constexpr int newest_version = 12;

/// What stands before each part of the file, where it is not the type of a value.
enum SnapshotMark : unsigned char {
  mark_slots = 244,
  mark_library = snapshot_mark_library,
  mark_early_function = 246,
  mark_module = 247,
  mark_idle = 248,
  mark_frequency = 249,
  mark_about = 250,
  mark_sizes = 251,
  mark_expiry_ms = 252,
  mark_expiry = 253,
  mark_database = 254,
  mark_end = 255,
};

/// How a value is written.
enum SnapshotForm : unsigned char {
  form_string = 0,
  form_list = 1,
  form_set = 2,
  form_sorted_set_as_text = 3,
  form_hash = 4,
  form_sorted_set = 5,
  form_module_early = 6,
  form_module = 7,
  form_list_ziplist = 10,
  form_set_intset = 11,
  form_sorted_set_ziplist = 12,
  form_hash_ziplist = 13,
  form_list_quicklist = 14,
  form_stream = 15,
  form_hash_listpack = 16,
  form_sorted_set_listpack = 17,
  form_list_quicklist_2 = 18,
  form_stream_2 = 19,
  form_set_listpack = 20,
  form_stream_3 = 21,
  form_hash_with_times = 24,
  form_hash_listpack_with_times = 25,
};

/// Elements of one key, several to a command.
class Elements {
 public:
  Elements(const RunCommand& run, std::string_view command, const std::string& key,
           std::size_t words_each)
      : run_(run), command_(command), key_(key), words_each_(words_each) {}

  void add(std::string_view word) {
    words_.emplace_back(word);
    if (words_.size() == most * words_each_) flush();
  }
  void end() {
    if (words_.size() % words_each_ != 0) refuse_damaged("an element without its value");
    if (!words_.empty()) flush();
  }

 private:
  static constexpr std::size_t most = 64;

  void flush() {
    std::vector<std::string_view> command{command_, key_};
    command.insert(command.end(), words_.begin(), words_.end());
    run_(command);
    words_.clear();
  }

  const RunCommand& run_;
  std::string_view command_;
  const std::string& key_;
  std::size_t words_each_;
  std::vector<std::string> words_;
};

std::string text_of_score(double score) {
  if (std::isnan(score)) refuse_damaged("a score that is no number");
  return fmt::format("{}", score);  // the shortest that is read as the same
}

class SnapshotReader {
 public:
  SnapshotReader(SnapshotSource& source, const RunCommand& run) : fields_(source), run_(run) {}

  SnapshotReport read() {
    read_version();
    while (read_part(fields_.byte())) {
    }
    return report_;
  }
  void read_value_of(const std::string& key) {
    key_ = key;
    read_value(static_cast<SnapshotForm>(fields_.byte()));
  }

 private:
  void read_version() {
    if (fields_.take(5) != "REDIS") refuse_damaged("no snapshot");
    const auto version = parse_integer<int>(fields_.take(4));
    if (!version || *version < 1) refuse_damaged("a snapshot without a version");
    if (*version > newest_version)
      refuse_content(
          fmt::format("a snapshot of version {} (up to {} are read)", *version, newest_version));
    version_ = *version;
  }

  /// False: it was the last.
  bool read_part(unsigned mark) {
    switch (mark) {
      case mark_end: read_checksum(); return false;
      case mark_database: select(); break;
      case mark_sizes: fields_.length(), fields_.length(); break;
      case mark_slots: fields_.length(), fields_.length(), fields_.length(); break;
      case mark_about: read_about(); break;
      case mark_expiry_ms: expiry_ms_ = signed_little_endian<8>(fields_.take(8)); break;
      case mark_expiry: expiry_ms_ = 1000 * signed_little_endian<4>(fields_.take(4)); break;
      case mark_idle: fields_.length(); break;
      case mark_frequency: fields_.byte(); break;
      case mark_library: run({"FUNCTION", "LOAD", "REPLACE", fields_.text()}); break;
      case mark_early_function:
        refuse_content("a library of functions of a Redis before 7.0 was released");
      case mark_module:
        refuse_content(fmt::format("data of the module '{}'", module_of(fields_.length())));
      default: read_key(static_cast<SnapshotForm>(mark));
    }
    return true;
  }

  void read_checksum() {
    if (version_ < 5) return;
    const auto counted = fields_.checksum();
    const auto written = little_endian<8>(fields_.take(8));
    if (written != 0 && written != counted)
      refuse_damaged("the snapshot does not fit the checksum at its end");
  }

  void select() {
    const auto database = fmt::format("{}", fields_.length());
    run({"SELECT", database});
  }

  void read_about() {
    const auto name = fields_.text();
    fields_.text();
    if (name == "aof-preamble" || name == "aof-base") report_.is_of_log = true;
  }

  /// Nine letters of six bits, and ten bits of its version.
  static std::string module_of(std::uint64_t id) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string name;
    for (int shift = 58; shift >= 10; shift -= 6) name += letters[id >> shift & 63];
    return name;
  }

  void read_key(SnapshotForm form) {
    key_ = fields_.text();
    read_value(form);
    if (expiry_ms_ < 0) return;
    const auto at = fmt::format("{}", expiry_ms_);
    run({"PEXPIREAT", key_, at});
    expiry_ms_ = -1;
  }

  void read_value(SnapshotForm form) {
    switch (form) {
      case form_string: return run({"SET", key_, fields_.text()});
      case form_list: return read_texts("RPUSH", 1);
      case form_set: return read_texts("SADD", 1);
      case form_hash: return read_texts("HSET", 2);
      case form_sorted_set_as_text:
      case form_sorted_set: return read_sorted_set(form);
      case form_list_ziplist: return read_packed("RPUSH", 1, visit_ziplist);
      case form_set_intset: return read_packed("SADD", 1, visit_intset);
      case form_set_listpack: return read_packed("SADD", 1, visit_listpack);
      case form_hash_ziplist: return read_packed("HSET", 2, visit_ziplist);
      case form_hash_listpack: return read_packed("HSET", 2, visit_listpack);
      case form_sorted_set_ziplist: return read_packed_scores(visit_ziplist);
      case form_sorted_set_listpack: return read_packed_scores(visit_listpack);
      case form_list_quicklist:
      case form_list_quicklist_2: return read_quicklist(form);
      case form_hash_with_times: return read_hash_with_times();
      case form_hash_listpack_with_times: return read_packed_hash_with_times();
      case form_stream:
      case form_stream_2:
      case form_stream_3: return read_stream(fields_, form_of_stream(form), key_, run_);
      case form_module_early:
      case form_module:
        refuse_content(
            fmt::format("the key '{}' of the module type '{}'", key_, module_of(fields_.length())));
    }
    refuse_content(fmt::format("the key '{}' of type {}, which a later server writes,", key_,
                               static_cast<unsigned>(form)));
  }

  static StreamForm form_of_stream(SnapshotForm form) {
    return form == form_stream     ? StreamForm::redis_5
           : form == form_stream_2 ? StreamForm::redis_7
                                   : StreamForm::redis_7_2;
  }

  void read_texts(std::string_view command, std::size_t words_each) {
    Elements elements{run_, command, key_, words_each};
    for (auto left = fields_.length(); left > 0; --left)
      for (std::size_t i = 0; i < words_each; ++i) elements.add(fields_.text());
    elements.end();
  }

  template <class Visit>
  void read_packed(std::string_view command, std::size_t words_each, Visit visit) {
    Elements elements{run_, command, key_, words_each};
    visit(fields_.text(), [&](std::string_view text) { elements.add(text); });
    elements.end();
  }

  void read_sorted_set(SnapshotForm form) {
    Elements elements{run_, "ZADD", key_, 2};
    for (auto left = fields_.length(); left > 0; --left) {
      const auto member = fields_.text();
      elements.add(text_of_score(form == form_sorted_set
                                     ? std::bit_cast<double>(little_endian<8>(fields_.take(8)))
                                     : fields_.number_as_text()));
      elements.add(member);
    }
    elements.end();
  }

  /// The member stands before its score there, and behind it in the command.
  template <class Visit>
  void read_packed_scores(Visit visit) {
    Elements elements{run_, "ZADD", key_, 2};
    std::optional<std::string> member;
    visit(fields_.text(), [&](std::string_view text) {
      if (!member) {
        member = text;
        return;
      }
      elements.add(text);
      elements.add(*member);
      member.reset();
    });
    if (member) refuse_damaged("a member without its score");
    elements.end();
  }

  void read_quicklist(SnapshotForm form) {
    constexpr std::uint64_t plain = 1;
    Elements elements{run_, "RPUSH", key_, 1};
    const auto add = [&](std::string_view text) { elements.add(text); };
    for (auto left = fields_.length(); left > 0; --left) {
      const auto kind = form == form_list_quicklist ? 0 : fields_.length();
      const auto node = fields_.text();
      if (form == form_list_quicklist)
        visit_ziplist(node, add);
      else if (kind == plain)
        add(node);
      else
        visit_listpack(node, add);
    }
    elements.end();
  }

  void read_hash_with_times() {
    fields_.take(8);  // the earliest of the times
    Elements elements{run_, "HSET", key_, 2};
    for (auto left = fields_.length(); left > 0; --left) {
      if (fields_.length() != 0) refuse_time();
      elements.add(fields_.text());
      elements.add(fields_.text());
    }
    elements.end();
  }

  void read_packed_hash_with_times() {
    fields_.take(8);
    Elements elements{run_, "HSET", key_, 2};
    std::size_t place = 0;
    visit_listpack(fields_.text(), [&](std::string_view text) {
      if (place++ % 3 != 2) return elements.add(text);
      if (text != "0") refuse_time();
    });
    if (place % 3 != 0) refuse_damaged("a field without its time");
    elements.end();
  }

  [[noreturn]] void refuse_time() const {
    refuse_content(fmt::format("a field of the hash '{}' with a time of its own (HEXPIRE)", key_));
  }

  void run(std::initializer_list<std::string_view> words) { run_(Words{words}); }

  SnapshotFields fields_;
  const RunCommand& run_;
  int version_ = 0;
  std::string key_;
  std::int64_t expiry_ms_ = -1;  // of the key to come
  SnapshotReport report_;
};

}  // namespace

SnapshotReport read_snapshot(SnapshotSource& source, const RunCommand& run) {
  return SnapshotReader{source, run}.read();
}

void read_value(SnapshotSource& source, const std::string& key, const RunCommand& run) {
  SnapshotReader{source, run}.read_value_of(key);
}

}  // namespace sluice::engine
