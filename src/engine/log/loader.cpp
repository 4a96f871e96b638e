// Reads the files of a log and hands out their commands; a MULTI only when its EXEC is there.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/log/append_log.hpp"
#include "engine/log/record.hpp"
#include "resp/letters.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

/// The bytes of a file from some place on, read as they are needed.
class Window {
 public:
  explicit Window(const File& file) : file_(file) {}

  std::string_view bytes() const noexcept { return std::string_view{buffer_}.substr(begin_); }
  std::uint64_t offset() const noexcept { return offset_; }
  void skip(std::size_t size) noexcept {
    begin_ += size;
    offset_ += size;
  }
  /// Reads at least as much again as is there, so that a long record is looked at few times. False:
  /// the file ends.
  bool read_more() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const auto had = buffer_.size();
    buffer_.resize(had + std::max(had, chunk));
    const auto got = file_.read(offset_ + had, std::span{buffer_}.subspan(had));
    buffer_.resize(had + got);
    return got > 0;
  }

 private:
  static constexpr std::size_t chunk = 256 * 1024;

  const File& file_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t offset_ = 0;
};

class Loader {
 public:
  Loader(const File& file, const std::string& name, bool last, const Replay& replay,
         OpenReport& report)
      : window_(file), name_(name), last_(last), replay_(replay), report_(report) {}

  std::uint64_t run() {
    refuse_snapshot();
    for (;;) {
      const auto parsed = parse_record(window_.bytes(), parser_);
      switch (parsed.kind) {
        case ParsedRecord::Kind::record: take_record(); break;
        case ParsedRecord::Kind::comment: break;
        case ParsedRecord::Kind::incomplete:
          if (window_.read_more()) continue;
          return end();
        case ParsedRecord::Kind::damaged:
          if (window_.read_more()) continue;  // all that is left, to see what follows
          if (last_ && is_blank(window_.bytes().substr(parsed.size))) return whole();
          damaged(window_.offset() + parsed.size, parsed.damage);
      }
      window_.skip(parsed.size);
    }
  }

 private:
  void refuse_snapshot() {
    window_.read_more();
    if (!window_.bytes().starts_with("REDIS")) return;
    throw Error{Errc::bad_argument, fmt::format("{} begins with a snapshot in Redis's RDB form, "
                                                "which this engine does not read; on that "
                                                "server run CONFIG SET aof-use-rdb-preamble no, "
                                                "then BGREWRITEAOF, and copy its folder again",
                                                name_)};
  }

  void take_record() {
    const auto words = parser_.words();
    const auto name = words.front();
    if (resp::is_word(name, "multi")) {
      if (transaction_at_) damaged(window_.offset(), "MULTI inside MULTI");
      transaction_at_ = window_.offset();
    } else if (resp::is_word(name, "exec")) {
      if (!transaction_at_) damaged(window_.offset(), "EXEC without MULTI");
      for (const auto& command : transaction_)
        run(std::vector<std::string_view>{command.begin(), command.end()});
      transaction_.clear();
      transaction_at_.reset();
    } else if (transaction_at_) {
      transaction_.emplace_back(words.begin(), words.end());
    } else {
      run(words);
    }
  }

  void run(Words words) {
    try {
      replay_(words);
    } catch (const Error& error) {
      damaged(transaction_at_.value_or(window_.offset()), error.message());
    }
    ++report_.commands;
  }

  /// The end of the file, in the middle of a record or not.
  std::uint64_t end() {
    const auto rest = window_.bytes();
    if (rest.empty() && !transaction_at_) return whole();
    if (!last_) damaged(whole(), "it ends in the middle of a command, and other files follow");
    if (hides_records(rest))
      damaged(window_.offset(), "a length that reaches over the commands after it");
    return whole();
  }

  std::uint64_t whole() const noexcept { return transaction_at_.value_or(window_.offset()); }

  [[noreturn]] void damaged(std::uint64_t offset, std::string_view why) const {
    throw Error{
        Errc::corrupt,
        fmt::format("{} is damaged at byte {}: {}; nothing was changed. Restore it from a backup, "
                    "or keep a copy and run 'redis-check-aof --fix' on it, which drops all that "
                    "comes after",
                    name_, offset, why)};
  }

  /// A file system may lengthen a file before it has written the data: zeros, after a power cut.
  static bool is_blank(std::string_view bytes) {
    return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
  }

  Window window_;
  const std::string& name_;
  const bool last_;
  const Replay& replay_;
  OpenReport& report_;
  resp::RequestParser parser_{record_limits()};
  std::optional<std::uint64_t> transaction_at_;  // where the open MULTI begins
  std::vector<std::vector<std::string>> transaction_;
};

}  // namespace

std::uint64_t load_log_file(const File& file, const std::string& name, bool last,
                            const Replay& replay, OpenReport& report) {
  return Loader{file, name, last, replay, report}.run();
}

}  // namespace sluice::engine
