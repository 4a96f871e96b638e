#include "bloom/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;

}  // namespace

Memory::Memory(std::uint64_t bytes) {
  bytes = std::max<std::uint64_t>(whole_lines(bytes), line);
  const bool is_huge = bytes >= huge_page;
  const std::uint64_t mapped = is_huge ? bytes + huge_page : bytes;  // room to begin at one
  void* const address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    throw Error{Errc::out_of_space,
                fmt::format("no memory for a Bloom filter of {} bytes: expect fewer keys", bytes)};
  holder_ = std::shared_ptr<void>{address, [mapped](void* begin) { ::munmap(begin, mapped); }};
  void* begin = address;
  if (is_huge) {
    std::size_t room = mapped;
    std::align(huge_page, bytes, begin, room);
    // Without huge pages a filter works as well, only slower.
    static_cast<void>(::madvise(begin, bytes, MADV_HUGEPAGE));
  }
  words_ = {static_cast<Word*>(begin), bytes / sizeof(Word)};
}

Memory Memory::copy_of(std::span<const Word> words) {
  Memory copy{words.size_bytes()};
  for (std::size_t i = 0; i < words.size(); ++i) copy.words_[i] = load(words[i]);
  return copy;
}

}  // namespace sluice::bloom
