#include "bloom/shared/shared_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/integer.hpp"
#include "bloom/draft.hpp"
#include "bloom/filter.hpp"
#include "bloom/memory.hpp"

namespace sluice::bloom {
namespace {

constexpr std::array<char, 8> magic{'S', 'L', 'U', 'I', 'C', 'E', 'S', 'B'};
constexpr std::uint64_t format = 1;
constexpr std::uint64_t most_chain_bytes = 64 * 100;
constexpr std::uint64_t file_piece = 1 << 20;
constexpr std::chrono::milliseconds load_lease = std::chrono::minutes{10};

struct Head {
  std::array<char, 8> begins;
  std::uint64_t format;
  std::uint64_t codec;
  std::uint64_t bits;
  std::uint64_t hashes;
  std::uint64_t chain_bytes;
  std::uint64_t bytes;
  std::uint64_t checksum;
};
static_assert(sizeof(Head) == Memory::line);
constexpr std::uint64_t summed_head = offsetof(Head, checksum);

struct Tail {
  std::uint64_t expected = 0;
  double error_rate = 0;
};
constexpr std::uint64_t tail_bytes = whole_lines(sizeof(Tail));

std::uint64_t bytes_of_link(const Link& link) noexcept { return whole_lines((link.bits + 7) / 8); }

std::uint64_t bytes_of_file(const Definition& definition) {
  std::uint64_t bytes = sizeof(Head) + whole_lines(definition.chain.size()) + tail_bytes;
  for (const Link& link : definition.links) bytes += bytes_of_link(link);
  return bytes;
}

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

/// Writes links as they come; where Redis has fewer bytes than a link may have, the rest is zero.
class LinkWriter {
 public:
  LinkWriter(const std::string& path, const Definition& definition, BloomCodec codec)
      : links_(definition.links), draft_(path) {
    const Head head{.begins = magic,
                    .format = format,
                    .codec = static_cast<std::uint64_t>(codec),
                    .bits = definition.links.front().bits,
                    .hashes = definition.links.front().hashes,
                    .chain_bytes = definition.chain.size(),
                    .bytes = bytes_of_file(definition),
                    .checksum = 0};
    draft_.write(bytes_of(head).first(summed_head));
    draft_.skip(sizeof head.checksum);
    draft_.write(bytes_of_text(definition.chain));
    draft_.fill();
  }

  void write(std::size_t link, std::string_view bytes) {
    go_to(link);
    const auto left = bytes_of_link(links_[link]) - written_;
    bytes = bytes.substr(0, left);
    draft_.write(bytes_of_text(bytes));
    written_ += bytes.size();
  }

  void finish(const Tail& tail) {
    go_to(links_.size());
    draft_.write(bytes_of(tail));
    draft_.fill();
    draft_.write_sum_at(summed_head);
    draft_.take_its_place();
  }

 private:
  void go_to(std::size_t link) {
    static const std::string zeroes(file_piece, '\0');
    for (; link_ < link; ++link_, written_ = 0)
      for (auto left = bytes_of_link(links_[link_]) - written_; left > 0;) {
        const auto now = std::min<std::uint64_t>(left, zeroes.size());
        draft_.write(bytes_of_text(std::string_view{zeroes}.substr(0, now)));
        left -= now;
      }
  }

  const std::vector<Link> links_;
  Draft draft_;
  std::size_t link_ = 0;
  std::uint64_t written_ = 0;  // of that link
};

/// What a file says before and behind its bits.
struct Contents {
  Head head{};
  Definition definition;
  Tail tail;
};

Contents read_contents(const SavedFile& file) {
  Contents contents;
  Head& head = contents.head;
  if (file.bytes() < sizeof head) throw damaged(file.path(), "it is shorter than its head");
  file.read(0, std::as_writable_bytes(std::span{&head, 1}));
  if (head.begins != magic) throw damaged(file.path(), "it does not begin as a shared one");
  if (head.format != format)
    throw damaged(file.path(),
                  fmt::format("its format is {}, and this program knows {}", head.format, format));
  if (head.bytes != file.bytes())
    throw damaged(file.path(), fmt::format("it has {} bytes of {}", file.bytes(), head.bytes));
  if (head.chain_bytes > most_chain_bytes ||
      head.bytes < sizeof head + whole_lines(head.chain_bytes) + tail_bytes)
    throw damaged(file.path(), fmt::format("its chain has {} bytes", head.chain_bytes));
  std::string chain(head.chain_bytes, '\0');
  file.read(sizeof head, std::as_writable_bytes(std::span{chain}));
  file.read(head.bytes - tail_bytes, std::as_writable_bytes(std::span{&contents.tail, 1}));
  try {
    const auto fields =
        Value::array({Value::bulk_string(fmt::to_string(head.bits)),
                      Value::bulk_string(fmt::to_string(head.hashes)),
                      chain.empty() ? Value{} : Value::bulk_string(chain), Value{}, Value{}});
    contents.definition = Definition::of(fields, file.path());
  } catch (const Error& lie) {
    throw damaged(file.path(), lie.message());
  }
  const double rate = contents.tail.error_rate;
  if (!(rate >= 0 && rate < 1)) throw damaged(file.path(), "its error rate is impossible");
  if (bytes_of_file(contents.definition) != head.bytes)
    throw damaged(file.path(), "its links are of another size");
  return contents;
}

/// All bytes of a file, a piece at a time, and their checksum.
class Reader {
 public:
  Reader(const SavedFile& file, const Head& head) : file_(file) {
    sum_.add(bytes_of(head).first(summed_head));
  }

  /// Empty: all is read.
  std::string_view next(std::uint64_t most) {
    piece_.resize(std::min({most, file_piece, file_.bytes() - offset_}));
    file_.read(offset_, std::as_writable_bytes(std::span{piece_}));
    sum_.add(bytes_of_text(piece_));
    offset_ += piece_.size();
    return piece_;
  }
  void check(const Head& head) {
    while (!next(file_piece).empty()) {
    }
    if (sum_.value() != head.checksum)
      throw damaged(file_.path(), "its checksum is wrong: bytes were changed");
  }

 private:
  const SavedFile& file_;
  std::uint64_t offset_ = sizeof(Head);
  std::string piece_;
  Checksum sum_;
};

/// How many keys the newest link of a chain has, by its bits.
std::uint64_t count_newest(const SavedFile& file, const Contents& contents) {
  const Link& link = contents.definition.links.back();
  std::uint64_t left = bytes_of_link(link);
  std::uint64_t offset = file.bytes() - tail_bytes - left;
  std::uint64_t set = 0;
  for (std::vector<std::byte> piece; left > 0; left -= piece.size()) {
    piece.resize(std::min(left, file_piece));
    file.read(offset, piece);
    offset += piece.size();
    for (const std::byte byte : piece)
      set += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned char>(byte)));
  }
  return estimated_keys(link.bits, std::min(set, link.bits), link.hashes);
}

Task<void> fill(std::shared_ptr<SharedFilter> next, const SavedFile& file,
                const Contents& contents) {
  Reader reader{file, contents.head};
  (void)reader.next(whole_lines(contents.head.chain_bytes));
  for (std::size_t link = 0; link < contents.definition.links.size(); ++link) {
    const std::uint64_t bytes = bytes_of_link(contents.definition.links[link]);
    for (std::uint64_t offset = 0; offset < bytes;) {
      std::string piece{reader.next(bytes - offset)};
      const std::uint64_t size = piece.size();
      while (!piece.empty() && piece.back() == '\0') piece.pop_back();  // as Redis would have it
      if (!piece.empty()) co_await next->fill(link, offset, std::move(piece));
      offset += size;
    }
  }
  reader.check(contents.head);
}

}  // namespace

Task<void> save(std::shared_ptr<SharedFilter> filter, std::string path) {
  std::optional<LinkWriter> writer;
  const auto begin = [&](const Definition& definition) -> SharedFilter::Sink {
    writer.reset();
    writer.emplace(path, definition, filter->codec());
    return [&writer](std::size_t link, std::uint64_t, std::string_view bytes) {
      writer->write(link, bytes);
    };
  };
  co_await filter->download(begin);
  const SharedBloomInfo info = co_await filter->info();
  // NOLINTNEXTLINE(*-unchecked-optional-access): the download has begun, or thrown
  writer->finish({.expected = info.expected, .error_rate = info.error_rate});
}

Task<void> load(std::shared_ptr<SharedFilter> filter, std::string path) {
  const SavedFile file{path};
  const Contents contents = read_contents(file);
  Reader{file, contents.head}.check(contents.head);
  if (contents.head.codec != static_cast<std::uint64_t>(filter->codec()))
    throw Error{Errc::config_mismatch,
                fmt::format("{} was saved from a Bloom filter with another codec: its keys would "
                            "not be found with this one",
                            path)};
  const std::vector<std::string> terms{fmt::to_string(contents.tail.expected),
                                       java_text(contents.tail.error_rate),
                                       fmt::to_string(count_newest(file, contents))};
  auto begun = filter->begin(contents.definition, terms, load_lease, false);
  const std::shared_ptr<SharedFilter> next = co_await begun;
  if (!next)
    throw Error{Errc::in_use, fmt::format("Bloom filter {} is rebuilt or loaded now: load when "
                                          "that has ended",
                                          quoted(filter->names().bits))};
  std::exception_ptr failure;
  try {
    co_await fill(next, file, contents);
    co_await next->finish(filter);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return;
  spawn(next->give_up(filter), [](const std::exception_ptr&) {});
  std::rethrow_exception(failure);
}

}  // namespace sluice::bloom
