#include "engine/rdb/packed.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

/// Bytes of a packed form, from the beginning on.
class PackedBytes {
 public:
  PackedBytes(std::string_view form, std::string_view bytes) : form_(form), rest_(bytes) {}

  bool empty() const noexcept { return rest_.empty(); }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse_damaged(fmt::format("a {} that is none", form_));
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  unsigned byte() { return static_cast<unsigned char>(take(1).front()); }
  template <std::size_t Size>
  std::int64_t number() {
    return signed_little_endian<Size>(take(Size));
  }
  [[noreturn]] void refuse() const { refuse_damaged(fmt::format("a {} that is none", form_)); }

 private:
  std::string_view form_;
  std::string_view rest_;
};

/// An element on its way to a visitor.
void give(const VisitElement& visit, std::int64_t number) {
  const fmt::format_int text{number};
  visit({text.data(), text.size()});
}

/// Gives the bytes of the element without the length behind it.
std::size_t visit_listpack_element(PackedBytes& at, unsigned first, const VisitElement& visit) {
  const auto text = [&](std::size_t head, std::size_t size) {
    visit(at.take(size));
    return head + size;
  };
  const auto number = [&](std::size_t size, std::int64_t value) {
    give(visit, value);
    return size;
  };
  if (first < 0x80) return number(1, first);
  if (first < 0xC0) return text(1, first & 0x3F);
  if (first < 0xE0) {
    const auto value = static_cast<std::int64_t>((first & 0x1F) << 8 | at.byte());
    return number(2, value < 4096 ? value : value - 8192);
  }
  if (first < 0xF0) return text(2, (first & 0x0F) << 8 | at.byte());
  switch (first) {
    case 0xF0: return text(5, static_cast<std::uint32_t>(at.number<4>()));
    case 0xF1: return number(3, at.number<2>());
    case 0xF2: return number(4, at.number<3>());
    case 0xF3: return number(5, at.number<4>());
    case 0xF4: return number(9, at.number<8>());
    default: at.refuse();
  }
}

void visit_ziplist_element(PackedBytes& at, unsigned first, const VisitElement& visit) {
  if (first < 0x40) return visit(at.take(first));
  if (first < 0x80) return visit(at.take((first & 0x3F) << 8 | at.byte()));
  switch (first) {
    case 0x80: return visit(at.take(big_endian<4>(at.take(4))));
    case 0xC0: return give(visit, at.number<2>());
    case 0xD0: return give(visit, at.number<4>());
    case 0xE0: return give(visit, at.number<8>());
    case 0xF0: return give(visit, at.number<3>());
    case 0xFE: return give(visit, at.number<1>());
    default:
      if (first < 0xF1 || first > 0xFD) at.refuse();
      return give(visit, static_cast<std::int64_t>(first) - 0xF1);
  }
}

constexpr unsigned end_of_list = 0xFF;

}  // namespace

void refuse_damaged(std::string what) { throw Error{Errc::corrupt, std::move(what)}; }

std::size_t size_of_length_behind(std::size_t element) noexcept {
  return element <= 127        ? 1
         : element < 16383     ? 2
         : element < 2097151   ? 3
         : element < 268435455 ? 4
                               : 5;
}

void visit_listpack(std::string_view bytes, const VisitElement& visit) {
  PackedBytes at{"listpack", bytes};
  if (static_cast<std::uint32_t>(at.number<4>()) != bytes.size()) at.refuse();
  at.take(2);  // how many elements; 65535 where there are more
  for (auto first = at.byte(); first != end_of_list; first = at.byte())
    at.take(size_of_length_behind(visit_listpack_element(at, first, visit)));
  if (!at.empty()) at.refuse();
}

void visit_ziplist(std::string_view bytes, const VisitElement& visit) {
  constexpr unsigned long_length = 0xFE;
  PackedBytes at{"ziplist", bytes};
  if (static_cast<std::uint32_t>(at.number<4>()) != bytes.size()) at.refuse();
  at.take(6);  // where the last element is, and how many there are
  for (auto before = at.byte(); before != end_of_list; before = at.byte()) {
    if (before == long_length) at.take(4);
    visit_ziplist_element(at, at.byte(), visit);
  }
  if (!at.empty()) at.refuse();
}

void visit_intset(std::string_view bytes, const VisitElement& visit) {
  PackedBytes at{"intset", bytes};
  const auto width = at.number<4>();
  auto left = static_cast<std::uint32_t>(at.number<4>());
  if ((width != 2 && width != 4 && width != 8) ||
      bytes.size() != 8 + left * static_cast<std::uint64_t>(width))
    at.refuse();
  for (; left > 0; --left)
    give(visit, width == 2 ? at.number<2>() : width == 4 ? at.number<4>() : at.number<8>());
}

std::string from_lzf(std::string_view bytes, std::size_t size) {
  // Three bytes say at most 264: a size beyond that is not believed, and not reserved.
  constexpr std::size_t most_of_a_byte = 88;
  PackedBytes at{"compressed text", bytes};
  if (size / most_of_a_byte > bytes.size()) at.refuse();
  std::string out;
  out.reserve(size);
  while (!at.empty()) {
    const auto head = at.byte();
    if (head < 32) {
      out += at.take(head + 1);
      continue;
    }
    std::size_t length = (head >> 5) + 2;
    if (length == 9) length += at.byte();
    const std::size_t back = ((head & 0x1F) << 8 | at.byte()) + 1;
    if (back > out.size() || length > size) at.refuse();
    for (; length > 0; --length) out += out[out.size() - back];  // it may reach into itself
  }
  if (out.size() != size) at.refuse();
  return out;
}

namespace {

constexpr auto crc_table = [] {
  constexpr std::uint64_t polynomial = 0x95AC9329AC4BC9B5;  // 0xAD93D23594C935A9, bits turned round
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    auto crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    table[i] = crc;
  }
  return table;
}();

}  // namespace

std::uint64_t crc64(std::uint64_t before, std::string_view bytes) noexcept {
  for (const char c : bytes) {
    const auto place = (before ^ static_cast<unsigned char>(c)) & 0xFF;
    before = crc_table[place] ^ before >> 8;
  }
  return before;
}

}  // namespace sluice::engine
