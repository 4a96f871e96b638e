/// A client of a proxy under load, in Redis's language or memcached's: what it asks, and whether
/// what comes is an answer to that. Each value begins with its key and '#', so that a reply to
/// another request is seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

enum class Language : std::uint8_t { redis, memcached };

struct Asked {
  enum class What : std::uint8_t { get, set, get_many } what;
  std::vector<std::string> keys;  ///< one, but for get_many
};

/// `padding`: bytes behind the key and '#' in a value that is set.
void append_request(std::string& bytes, Language language, const Asked& asked,
                    std::size_t padding = 0);

class Talk {
 public:
  enum class Outcome : std::uint8_t { right, error, wrong };

  virtual ~Talk() = default;
  /// Both throw std::system_error when the connection fails or nothing comes for ten seconds.
  virtual void send(std::string_view bytes) = 0;
  virtual Outcome read(const Asked& asked) = 0;
};

/// Throws std::system_error when there is no connection.
std::unique_ptr<Talk> connect(Language language, std::uint16_t port);

}  // namespace sluice::test
