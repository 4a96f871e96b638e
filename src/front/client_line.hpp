/// A line of CLIENT LIST.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "front/own_words.hpp"

namespace sluice::front {

struct ClientLine {
  std::uint64_t id = 0;
  std::string address;
  std::string local_address;
  int descriptor = -1;
  std::int64_t age_s = 0;
  std::int64_t idle_s = 0;
  std::string_view flags = "N";
  int database = 0;
  std::size_t channels = 0;
  std::size_t patterns = 0;
  std::size_t shards = 0;
  std::int64_t queued = -1;  ///< commands of a transaction; -1: there is none
  std::size_t unread = 0;    ///< bytes of requests
  std::size_t unsent = 0;    ///< bytes of replies
  std::size_t memory = 0;
  std::string_view command = "NULL";
  std::string_view user = "default";
  std::int64_t redirect = -1;
  int protocol = 2;
};

/// With its line end, in Redis's form.
std::string to_string(const ClientLine& line, const OwnWords& words);

}  // namespace sluice::front
