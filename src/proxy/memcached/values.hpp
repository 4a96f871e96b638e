/// The blocks "VALUE key flags size [unique]\r\n<data>\r\n" of which the reply to a get is made,
/// and how such replies become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy {

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
