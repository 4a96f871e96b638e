// Reads the files of a log and hands out their commands; a MULTI only when its EXEC is there. A
// snapshot at the beginning of a file becomes commands, too.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/log/append_log.hpp"
#include "engine/log/record.hpp"
#include "engine/rdb/snapshot_reader.hpp"
#include "resp/letters.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

/// The bytes of a file from some place on, read as they are needed.
class Window {
 public:
  explicit Window(const File& file) : file_(file), file_size_(file.size()) {}

  std::string_view bytes() const noexcept { return std::string_view{buffer_}.substr(begin_); }
  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t file_size() const noexcept { return file_size_; }
  /// Bytes up to the end of the file.
  std::uint64_t left() const noexcept { return file_size_ - offset_; }
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
  const std::uint64_t file_size_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t offset_ = 0;
};

/// A snapshot at the beginning of a file.
class WindowSource final : public SnapshotSource {
 public:
  explicit WindowSource(Window& window) : window_(window) {}

  std::string_view take(std::uint64_t size) override {
    window_.skip(std::exchange(taken_, 0));
    if (size > window_.left()) throw Error{Errc::corrupt, "the file ends within the snapshot"};
    while (window_.bytes().size() < size)
      if (!window_.read_more()) throw Error{Errc::corrupt, "the file was cut meanwhile"};
    taken_ = size;
    return window_.bytes().substr(0, size);
  }
  /// The reader has no use for the last bytes any more.
  void leave() { window_.skip(std::exchange(taken_, 0)); }

 private:
  Window& window_;
  std::size_t taken_ = 0;
};

/// Commands that wait, in their order, each with its place in the file.
class HeldCommands {
 public:
  void add(std::uint64_t offset, Words words) {
    commands_.emplace_back(offset, words.size());
    for (const auto word : words) {
      sizes_.push_back(word.size());
      text_ += word;
    }
  }
  template <class Visit>  // visit(Words, std::uint64_t offset)
  void take(Visit&& visit) {
    std::string_view text = text_;
    auto size = sizes_.begin();
    std::vector<std::string_view> words;
    for (const auto& [offset, count] : commands_) {
      words.clear();
      for (std::size_t i = 0; i < count; ++i, text.remove_prefix(*size++))
        words.push_back(text.substr(0, *size));
      visit(Words{words}, offset);
    }
    clear();
  }
  void clear() noexcept {
    commands_.clear();
    sizes_.clear();
    text_.clear();
  }

 private:
  std::vector<std::pair<std::uint64_t, std::size_t>> commands_;  // offset, words
  std::vector<std::size_t> sizes_;                               // of the words
  std::string text_;
};

/// Where checksums have begun, the commands of a write run when its checksum has been seen: a write
/// without one was torn, and nobody was told of it. What a redis-server appends to such a file has
/// none: it begins with a SELECT in its own spelling, and runs as it is read.
class Loader {
 public:
  Loader(const File& file, const std::string& name, bool last, const Replay& replay,
         OpenReport& report)
      : window_(file), name_(name), last_(last), replay_(replay), report_(report) {}

  std::uint64_t run() {
    window_.read_more();
    if (is_snapshot(window_.bytes())) read_snapshot();
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
          if (last_ && ends_in_zeros(window_.bytes())) return end();
          throw damage(window_.offset() + parsed.size, parsed.damage);
      }
      window_.skip(parsed.size);
    }
  }

 private:
  /// It is whole or damaged: nobody appends to one.
  void read_snapshot() {
    WindowSource source{window_};
    SnapshotReport snapshot;
    try {
      snapshot = engine::read_snapshot(source, [this](Words words) {
        replay_(words);
        ++report_.commands;
      });
    } catch (const Error& error) {
      if (error.errc() == Errc::bad_argument) throw unknown(window_.offset(), error.message());
      throw damaged_snapshot(error.message());
    }
    source.leave();
    if (!snapshot.is_of_log && window_.left() > 0)
      throw damaged_snapshot("more stands behind the snapshot");
  }

  bool awaits_checksum() const noexcept { return checksums_.has_key() && !is_of_redis_; }

  void take_record(std::size_t size) {
    checksums_.add(window_.bytes().substr(0, size));
    const auto words = parser_.words();
    if (awaits_checksum() && words.front() == select_of_redis) {
      is_of_redis_ = true;
      release();
    }
    if (awaits_checksum())
      held_.add(window_.offset(), words);
    else
      execute(words, window_.offset());
  }

  void take_comment(std::size_t size) {
    const auto comment = window_.bytes().substr(0, size);
    const bool unsealed = awaits_checksum() && window_.offset() > right_to_;
    switch (checksums_.take(comment)) {
      case ChecksumReader::Line::other: return take_other(comment);
      case ChecksumReader::Line::wrong:
        throw damage(
            right_to_,
            fmt::format("the checksum at byte {} does not fit what is written from here on",
                        window_.offset()));
      case ChecksumReader::Line::right: release(); break;
      case ChecksumReader::Line::key:
        if (unsealed) throw damage(right_to_, "what is written from here on has no checksum");
        is_of_redis_ = false;
        break;
    }
    right_to_ = window_.offset() + size;
  }

  void take_other(std::string_view comment) {
    const auto second = timestamp_of(comment);
    if (!second && awaits_checksum())
      throw damage(window_.offset(), "a comment that is neither a time nor a checksum");
    if (second) second_ = *second;
    if (!awaits_checksum()) report_.last_second = second_;
    checksums_.add(comment);
  }

  /// What was held is as it was written.
  void release() {
    held_.take([this](Words words, std::uint64_t offset) { execute(words, offset); });
    report_.last_second = second_;
  }

  void execute(Words words, std::uint64_t offset) {
    const auto name = words.front();
    if (resp::is_word(name, "multi")) {
      if (transaction_at_) throw damage(offset, "MULTI inside MULTI");
      transaction_at_ = offset;
    } else if (resp::is_word(name, "exec")) {
      if (!transaction_at_) throw damage(offset, "EXEC without MULTI");
      transaction_.take([this](Words command, std::uint64_t at) { run(command, at); });
      transaction_at_.reset();
    } else if (transaction_at_) {
      transaction_.add(offset, words);
    } else {
      run(words, offset);
    }
  }

  void run(Words words, std::uint64_t offset) {
    try {
      replay_(words);
      ++report_.commands;
    } catch (const Error& error) {
      throw error.errc() == Errc::bad_argument ? unknown(offset, error.message())
                                               : damage(offset, error.message());
    }
  }

  /// The end of the file, in the middle of a record or not.
  std::uint64_t end() {
    const auto rest = window_.bytes();
    if (checksums_.ends_in(rest))
      throw damage(window_.offset(), "a length that reaches over the commands after it");
    if (awaits_checksum()) {
      if (!may_be_torn(rest))
        throw damage(window_.offset(), "a comment that is neither a time nor a checksum");
      if (!last_ && window_.offset() + rest.size() > right_to_)
        throw damage(right_to_, "it ends in the middle of a write, and other files follow");
      return right_to_;
    }
    const bool is_whole = rest.empty() && !transaction_at_;
    if (!is_whole && !last_)
      throw damage(whole(), "it ends in the middle of a command, and other files follow");
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
  Error damaged_snapshot(std::string_view why) const {
    return Error{Errc::corrupt,
                 fmt::format("{} is damaged at byte {}: {}; nothing was changed. Restore it from a "
                             "backup; 'redis-check-rdb' says more about what is left",
                             name_, window_.offset(), why)};
  }
  Error unknown(std::uint64_t offset, std::string_view what) const {
    return Error{Errc::bad_argument,
                 fmt::format("{} has {} at byte {}, which this engine does not have; the file is "
                             "sound, and nothing was changed. Load it with a redis-server, and "
                             "keep there what needs it",
                             name_, what, offset)};
  }

  /// A file system may lengthen a file before it has written the data: zeros, after a power cut.
  static std::string_view without_zeros(std::string_view bytes) noexcept {
    return bytes.substr(0, bytes.find_last_not_of('\0') + 1);
  }
  static bool ends_in_zeros(std::string_view bytes) {
    const auto written = without_zeros(bytes);
    resp::RequestParser parser{record_limits()};
    return written.size() < bytes.size() &&
           parse_record(written, parser).kind == ParsedRecord::Kind::incomplete;
  }
  /// Whether the end of a file, which has no whole record, may be the beginning of what we write.
  static bool may_be_torn(std::string_view rest) noexcept {
    const auto written = without_zeros(rest);
    return !written.starts_with('#') || may_become_timestamp(written) ||
           ChecksumReader::may_become_line(written);
  }

  Window window_;
  const std::string& name_;
  const bool last_;
  const Replay& replay_;
  OpenReport& report_;
  resp::RequestParser parser_{record_limits()};
  ChecksumReader checksums_;
  std::uint64_t right_to_ = 0;  // behind the latest key or checksum
  bool is_of_redis_ = false;    // what comes now
  HeldCommands held_;           // since `right_to_`
  std::int64_t second_ = 0;
  std::optional<std::uint64_t> transaction_at_;  // where the open MULTI begins
  HeldCommands transaction_;
};

}  // namespace

std::uint64_t load_log_file(const File& file, const std::string& name, bool last,
                            const Replay& replay, OpenReport& report) {
  return Loader{file, name, last, replay, report}.run();
}

}  // namespace sluice::engine
