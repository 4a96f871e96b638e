/// What values consist of in a snapshot, to be written: lengths, texts, listpacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::engine {

/// So many elements, or so many bytes of a text.
void append_length(std::string& out, std::uint64_t length);
void append_text(std::string& out, std::string_view text);
/// Two numbers, greatest byte first.
void append_raw_id(std::string& out, std::uint64_t ms, std::uint64_t number);
void append_little_endian(std::string& out, std::uint64_t value, std::size_t size);

class ListpackWriter {
 public:
  void add(std::int64_t number);
  void add(std::string_view text);
  std::string finish() const;

 private:
  void end(std::size_t size);

  std::string elements_;
  std::size_t count_ = 0;
};

/// What DUMP puts behind a value: the version whose forms are used, and a checksum.
void seal_value(std::string& value);
/// The value without it; null: the version is one that is not read, or the checksum is wrong.
std::string_view sealed_value(std::string_view sealed) noexcept;

}  // namespace sluice::engine
