/// Where requests and replies of memcached's text protocol end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/memcached/commands.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

struct MemcachedLimits {
  std::size_t whole = std::size_t{512} << 20;  ///< bytes of a request
  std::size_t words = 1 << 20;
  /// A line ends with CR LF, and a bad request ends the connection without a reply.
  bool strict = false;
};

/// A request is a line, and for the commands that store also a block of data, which is the last of
/// its words. An empty line has one empty word: it has an answer too.
class MemcachedRequestReader final : public RequestReader {
 public:
  explicit MemcachedRequestReader(MemcachedLimits limits) : limits_(limits) {}

  State read(std::string_view buffer) override;
  Words words() const noexcept override { return words_; }
  std::size_t size() const noexcept override { return size_; }
  std::string_view wire(std::string_view buffer) override;
  std::size_t missing() const noexcept override { return missing_; }
  std::size_t memory() const noexcept override { return words_.capacity() * sizeof words_[0]; }
  std::string error_reply() const override;

 private:
  void start();
  State read_line(std::string_view buffer);
  State begin_data(const MemcachedCommand& command, std::string_view buffer);
  State read_data(std::string_view buffer);
  bool split(std::string_view line);
  bool shorten_numbers();
  State wait_for(std::size_t bytes) noexcept;
  State refuse(std::string_view what);

  MemcachedLimits limits_;
  State state_ = State::incomplete;
  std::size_t scanned_ = 0;          // no line end up to here
  std::size_t line_ = 0;             // bytes of the line with its end, once it is whole
  std::optional<std::size_t> data_;  // bytes of the data behind it
  std::size_t size_ = 0;
  std::size_t missing_ = 1;
  std::vector<std::string_view> words_;
  bool is_canonical_ = false;  // single blanks, CR LF, no number that a server would cut
  std::array<std::string, 2> numbers_;
  std::string wire_;  // where it is not
  std::string_view error_;
};

/// A reply is a line; or a line and a value; or such ones up to END.
class MemcachedReplyReader final : public ReplyReader {
 public:
  explicit MemcachedReplyReader(std::size_t size_limit) : size_limit_(size_limit) {}

  State read(std::string_view buffer) override;
  std::size_t size() const noexcept override { return at_; }
  std::size_t missing() const noexcept override { return missing_; }
  bool is_too_long() const noexcept override { return too_long_; }

 private:
  void start();
  State wait_for(std::size_t bytes, std::size_t buffered) noexcept;

  std::size_t size_limit_;
  State state_ = State::incomplete;
  std::size_t at_ = 0;       // all before is done
  std::size_t scanned_ = 0;  // no line end up to here
  std::size_t missing_ = 1;
  bool too_long_ = false;
  char block_ = 0;  // within VALUE ... END ('V') or STAT ... END ('S')
};

// values.cpp: the blocks "VALUE key flags size [unique]\r\n<data>\r\n" of which the reply to a get
// is made, and how such replies become one.

/// The bytes of data behind a line "VALUE ..." or "VA ..." (without its end). Empty: the line is
/// not right.
std::optional<std::size_t> value_size(std::string_view line) noexcept;

struct ValueBlock {
  std::string_view key;
  std::string_view bytes;  ///< all of it
};

/// Takes the block at the front of a reply that a reader has found whole. Empty: there is none
/// left.
std::optional<ValueBlock> take_value(std::string_view& reply) noexcept;

bool is_memcached_error(std::string_view reply) noexcept;

enum class MergeStyle : std::uint8_t {
  whole,    ///< an error of one is the error of all
  partial,  ///< the keys of a failed one are missing, as after an eviction, unless all have failed
  twemproxy,  ///< as whole; what a server has not makes room for its next value, so that the order
              ///< of keys may be another
};

/// From the replies of fragments (Merge::by_key), or of all servers (concatenate: their statistics;
/// all_ok), to one.
void append_merged_replies(std::string& out, Words words, const Plan& plan,
                           std::span<const FragmentReply> replies, MergeStyle style);

}  // namespace sluice::proxy
