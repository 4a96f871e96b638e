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
  std::uint64_t file_size() const { return file_.size(); }
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
        case ParsedRecord::Kind::record: take_record(parsed.size); break;
        case ParsedRecord::Kind::comment: take_comment(parsed.size); break;
        case ParsedRecord::Kind::incomplete:
          if (window_.read_more()) continue;
          return end();
        case ParsedRecord::Kind::damaged:
          if (window_.read_more()) continue;  // all that is left, to see what follows
          if (last_ && is_blank(window_.bytes().substr(parsed.size))) return end();
          throw damage(window_.offset() + parsed.size, parsed.damage);
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

  void take_record(std::size_t size) {
    checksums_.add(window_.bytes().substr(0, size));
    const auto words = parser_.words();
    const auto name = words.front();
    if (resp::is_word(name, "multi")) {
      if (transaction_at_) return refuse(damage(window_.offset(), "MULTI inside MULTI"));
      transaction_at_ = window_.offset();
    } else if (resp::is_word(name, "exec")) {
      if (!transaction_at_) return refuse(damage(window_.offset(), "EXEC without MULTI"));
      for (const auto& [offset, command] : transaction_)
        run(std::vector<std::string_view>{command.begin(), command.end()}, offset);
      transaction_.clear();
      transaction_at_.reset();
    } else if (transaction_at_) {
      transaction_.emplace_back(window_.offset(),
                                std::vector<std::string>{words.begin(), words.end()});
    } else {
      run(words, window_.offset());
    }
  }

  void take_comment(std::size_t size) {
    const auto comment = window_.bytes().substr(0, size);
    const auto line = checksums_.take(comment);
    if (line == ChecksumReader::Line::other) {
      if (const auto second = timestamp_of(comment)) report_.last_second = *second;
      return checksums_.add(comment);
    }
    if (line == ChecksumReader::Line::wrong)
      throw damage(right_to_,
                   fmt::format("the checksum at byte {} does not fit what is written from here on",
                               window_.offset()));
    if (refusal_) throw *refusal_;
    right_to_ = window_.offset() + size;
  }

  void run(Words words, std::uint64_t offset) {
    if (refusal_) return;
    try {
      replay_(words);
      ++report_.commands;
    } catch (const Error& error) {
      refuse(error.errc() == Errc::bad_argument ? unknown(offset, error.message())
                                                : damage(offset, error.message()));
    }
  }

  /// The first command that cannot be run ends the loading, but a checksum behind it speaks first:
  /// it may not have been written so.
  void refuse(Error error) {
    if (!checksums_.has_key()) throw error;
    if (!refusal_) refusal_ = std::move(error);
  }

  /// The end of the file, in the middle of a record or not.
  std::uint64_t end() {
    const auto rest = window_.bytes();
    const bool is_whole = rest.empty() && !transaction_at_;
    if (!is_whole && !last_)
      throw damage(whole(), "it ends in the middle of a command, and other files follow");
    if (checksums_.ends_in(rest))
      throw damage(window_.offset(), "a length that reaches over the commands after it");
    if (refusal_) throw *refusal_;
    return whole();
  }

  std::uint64_t whole() const noexcept { return transaction_at_.value_or(window_.offset()); }

  Error damage(std::uint64_t offset, std::string_view why) const {
    return Error{
        Errc::corrupt,
        fmt::format("{} is damaged at byte {}: {}; nothing was changed. Restore it from a "
                    "backup. If there is none, look at byte {} of a copy: 'redis-check-aof "
                    "--fix' would drop the {} bytes from there on",
                    name_, offset, why, offset, window_.file_size() - offset)};
  }
  Error unknown(std::uint64_t offset, std::string_view command) const {
    return Error{Errc::bad_argument,
                 fmt::format("{} has {} at byte {}, a command that this engine does not have; the "
                             "file is sound, and nothing was changed. Load it with a redis-server, "
                             "and keep there what needs that command",
                             name_, command, offset)};
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
  std::vector<std::pair<std::uint64_t, std::vector<std::string>>> transaction_;  // with offsets
  ChecksumReader checksums_;
  std::uint64_t right_to_ = 0;    // behind the latest key or checksum
  std::optional<Error> refusal_;  // of a command that no checksum has confirmed yet
};

}  // namespace

std::uint64_t load_log_file(const File& file, const std::string& name, bool last,
                            const Replay& replay, OpenReport& report) {
  return Loader{file, name, last, replay, report}.run();
}

}  // namespace sluice::engine
