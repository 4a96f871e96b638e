#include "bloom/filter_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bloom/draft.hpp"
#include "bloom/scalable_filter.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::array<char, 8> magic{'S', 'L', 'U', 'I', 'C', 'E', 'B', 'F'};
constexpr std::uint64_t format = 1;
constexpr std::uint64_t largest_part = std::uint64_t{1} << 40;  // bits

struct Head {
  std::array<char, 8> begins;
  std::uint64_t format;
  std::uint64_t kind;
  std::uint64_t parts;
  std::uint64_t bytes;
  std::uint64_t expected;
  double error_rate;
  std::uint64_t max_bytes;
  std::uint64_t checksum;
};
constexpr std::uint64_t head_bytes = whole_lines(sizeof(Head));
constexpr std::size_t summed_head = offsetof(Head, checksum);

constexpr std::uint64_t table_bytes(std::uint64_t parts) {
  return whole_lines(parts * sizeof(Shape));
}

/// Words that may be changed meanwhile: what is written is what is summed.
void write_words(Draft& draft, std::span<const Word> words) {
  std::vector<Word> some;
  while (!words.empty()) {
    const auto now = words.first(std::min<std::size_t>(words.size(), 8192));
    some.clear();
    for (const auto& word : now) some.push_back(load(word));
    draft.write(std::as_bytes(std::span{some}));
    words = words.subspan(now.size());
  }
  draft.fill();
}

/// What a file says of its words.
struct Table {
  BloomFilterOptions options;
  std::vector<Shape> shapes;
  std::uint64_t checksum = 0;
  std::uint64_t words_begin = 0;
};

Head read_head(const SavedFile& file) {
  Head head{};
  if (file.bytes() < head_bytes) throw damaged(file.path(), "it is shorter than its head");
  file.read(0, std::as_writable_bytes(std::span{&head, 1}));
  if (head.begins != magic) throw damaged(file.path(), "it does not begin as one");
  if (head.format != format)
    throw damaged(file.path(),
                  fmt::format("its format is {}, and this program knows {}", head.format, format));
  if (head.bytes != file.bytes())
    throw damaged(file.path(), fmt::format("it has {} bytes of {}", file.bytes(), head.bytes));
  if (head.parts == 0 || head.parts > most_parts ||
      head.bytes < head_bytes + table_bytes(head.parts))
    throw damaged(file.path(), fmt::format("it says that it has {} parts", head.parts));
  if (head.kind > static_cast<std::uint64_t>(BloomKind::scalable) ||
      !(head.error_rate > 0 && head.error_rate < 1) || head.expected == 0)
    throw damaged(file.path(), "its options are impossible");
  return head;
}

Table read_table(const SavedFile& file) {
  const auto head = read_head(file);
  Table table{.options = {.kind = static_cast<BloomKind>(head.kind),
                          .expected = head.expected,
                          .error_rate = head.error_rate,
                          .max_bytes = head.max_bytes},
              .shapes = std::vector<Shape>(head.parts),
              .checksum = head.checksum,
              .words_begin = head_bytes + table_bytes(head.parts)};
  file.read(head_bytes, std::as_writable_bytes(std::span{table.shapes}));
  std::uint64_t bytes = table.words_begin;
  for (const auto& shape : table.shapes) {
    if (shape.bits == 0 || shape.bits % 64 != 0 || shape.bits > largest_part)
      throw damaged(file.path(), fmt::format("it has a part of {} bits", shape.bits));
    bytes += whole_lines(shape.bits / 8);
  }
  if (bytes != file.bytes())
    throw damaged(file.path(),
                  fmt::format("its parts are of {} bytes, and it has {}", bytes, file.bytes()));
  return table;
}

/// Everything but the words, as it was summed.
void sum_front(const SavedFile& file, const Table& table, Checksum& sum) {
  std::vector<std::byte> front(table.words_begin);
  file.read(0, front);
  sum.add(std::span{front}.first(summed_head));
  sum.add(std::span{front}.subspan(sizeof(Head)));
}

std::unique_ptr<Filter> finish(const SavedFile& file, const Table& table, const Checksum& sum,
                               std::vector<Part> parts) {
  if (sum.value() != table.checksum)
    throw damaged(file.path(), "its checksum is wrong: bytes were changed");
  for (const auto& [shape, memory] : parts)
    if (count_bits(memory.words().subspan(shape.bits / 64)) != 0)
      throw damaged(file.path(), "there are bits behind the last of a part");
  try {
    return make_filter(table.options, std::move(parts));
  } catch (const Error& error) {
    throw damaged(file.path(), error.message());
  }
}

}  // namespace

void save_file(const Filter& filter, const std::string& path) {
  const auto parts = filter.parts();
  const auto& options = filter.options();
  Head head{.begins = magic,
            .format = format,
            .kind = static_cast<std::uint64_t>(options.kind),
            .parts = parts.size(),
            .bytes = head_bytes + table_bytes(parts.size()),
            .expected = options.expected,
            .error_rate = options.error_rate,
            .max_bytes = options.max_bytes,
            .checksum = 0};
  for (const auto& part : parts) head.bytes += whole_lines(part.shape.bits / 8);

  Draft draft{path};
  draft.write(bytes_of(head).first(summed_head));
  draft.skip(sizeof head.checksum);
  draft.fill();
  for (const auto& part : parts) draft.write(bytes_of(part.shape));
  draft.fill();
  for (const auto& part : parts) write_words(draft, part.words);
  draft.write_sum_at(summed_head);
  draft.take_its_place();
}

std::unique_ptr<Filter> load_file(const std::string& path, std::uint64_t max_bytes) {
  const SavedFile file{path};
  if (file.bytes() > max_bytes)
    throw Error{Errc::bad_argument,
                fmt::format("the Bloom filter {} has {} bytes, more than max_bytes ({}): raise it, "
                            "or map the file",
                            path, file.bytes(), max_bytes)};
  const auto table = read_table(file);
  Checksum sum;
  sum_front(file, table, sum);
  std::vector<Part> parts;
  auto offset = table.words_begin;
  for (const auto& shape : table.shapes) {
    Memory memory{shape.bits / 8};
    const auto into = std::as_writable_bytes(memory.words());
    file.read(offset, into);
    sum.add(into);
    offset += into.size();
    parts.push_back({shape, std::move(memory)});
  }
  return finish(file, table, sum, std::move(parts));
}

std::unique_ptr<Filter> map_file(const std::string& path) {
  const SavedFile file{path};
  const auto table = read_table(file);
  const auto bytes = file.bytes();
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) fail("map", path);
  const std::shared_ptr<void> holder{address, [bytes](void* begin) { ::munmap(begin, bytes); }};

  Checksum sum;
  sum_front(file, table, sum);
  std::vector<Part> parts;
  auto* begin = static_cast<std::byte*>(address) + table.words_begin;
  for (const auto& shape : table.shapes) {
    const std::span words{reinterpret_cast<Word*>(begin),
                          whole_lines(shape.bits / 8) / sizeof(Word)};
    sum.add(std::as_bytes(words));
    parts.push_back({shape, Memory{holder, words}});
    begin += words.size_bytes();
  }
  return finish(file, table, sum, std::move(parts));
}

}  // namespace sluice::bloom
