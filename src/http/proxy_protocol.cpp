#include "http/proxy_protocol.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::http {
namespace {

constexpr std::string_view signature{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t start = 16;  // signature, version and command, family, length
/// Of addresses and extensions: certificates of clients are not for us.
constexpr std::size_t longest = 4096;

enum class Command : std::uint8_t { local, proxy };

/// A row for each family and transport that a connection can have.
struct Family {
  std::uint8_t code;
  std::size_t addresses;  // bytes of both, and of their ports
  int family;             // AF_UNSPEC: no address is told
};
constexpr std::array families{Family{0x00, 0, AF_UNSPEC}, Family{0x11, 12, AF_INET},
                              Family{0x21, 36, AF_INET6}, Family{0x31, 216, AF_UNIX}};

std::uint8_t byte_of(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(bytes[at]);
}
std::size_t number_of(std::string_view bytes, std::size_t at) noexcept {
  return std::size_t{byte_of(bytes, at)} << 8 | byte_of(bytes, at + 1);
}

std::string text_of(int family, std::string_view address) {
  if (family == AF_UNIX) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address.data(), text.data(), text.size());
  return text.data();
}

}  // namespace

std::size_t ProxyHeader::wants() const noexcept {
  if (stage_ != Stage::coming) return 0;
  return (size_ == 0 ? start : size_) - bytes_.size();
}

ProxyHeader::Stage ProxyHeader::refuse(std::string_view why) noexcept {
  refusal_ = why;
  return stage_ = Stage::refused;
}

ProxyHeader::Stage ProxyHeader::read(std::string_view bytes) {
  if (stage_ != Stage::coming) return stage_;
  bytes_ += bytes;
  const auto compared = std::min(bytes_.size(), signature.size());
  if (bytes_.compare(0, compared, signature, 0, compared) != 0)
    return refuse(bytes_.starts_with("PROXY ")
                      ? "version 1 of the PROXY protocol: let the balancer send version 2"
                      : "no header of the PROXY protocol");
  if (size_ == 0 && bytes_.size() == start && end_of_start() == Stage::refused) return stage_;
  return bytes_.size() == size_ ? end_of_header() : stage_;
}

ProxyHeader::Stage ProxyHeader::end_of_start() {
  const auto version = byte_of(bytes_, 12) >> 4;
  const auto command = byte_of(bytes_, 12) & 0xF;
  if (version != 2) return refuse("another version of the PROXY protocol than 2");
  if (command > std::to_underlying(Command::proxy))
    return refuse("a command that the PROXY protocol does not have");
  const auto length = number_of(bytes_, 14);
  if (length > longest) return refuse("a header of the PROXY protocol that is too long");
  size_ = start + length;
  return stage_;
}

ProxyHeader::Stage ProxyHeader::end_of_header() {
  // What a balancer sends with LOCAL, as its own questions for health, is not looked at.
  if ((byte_of(bytes_, 12) & 0xF) == std::to_underlying(Command::local))
    return stage_ = Stage::done;
  const auto row = std::ranges::find(families, byte_of(bytes_, 13), &Family::code);
  if (row == families.end()) return refuse("a family of addresses that no stream has");
  const auto behind = start + row->addresses;
  if (size_ < behind) return refuse("a header of the PROXY protocol without its addresses");
  if (row->family == AF_UNSPEC) return stage_ = Stage::done;
  if (!has_whole_extensions(behind)) return refuse("an extension that ends behind the header");
  names_client_ = true;
  client_ = text_of(row->family, std::string_view{bytes_}.substr(start));
  return stage_ = Stage::done;
}

/// Type, length, value; none is asked for.
bool ProxyHeader::has_whole_extensions(std::size_t from) const noexcept {
  constexpr std::size_t head = 3;
  while (from < size_) {
    if (size_ - from < head) return false;
    const auto length = number_of(bytes_, from + 1);
    if (size_ - from - head < length) return false;
    from += head + length;
  }
  return true;
}

}  // namespace sluice::http
