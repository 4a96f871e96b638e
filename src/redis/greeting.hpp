/// What a connection says first, and what it must hear before it carries calls. Decided here
/// without any I/O.
///
/// One write: HELLO 3 with AUTH and SETNAME, SELECT, SUBSCRIBE for the channels of before, and a
/// PING, because a server that is still loading its data says so only to that.
#pragma once

#include <string>
#include <vector>

#include "redis/options.hpp"
#include "sluice/value.hpp"

namespace sluice::redis {

class Greeting {
 public:
  Greeting(const RedisOptions& options, const std::vector<std::string>& channels);

  const std::string& bytes() const noexcept { return bytes_; }
  /// Takes the next reply or push. True: that was the last. Throws Error (effect none) when the
  /// server will not have us.
  bool take(const Value& reply);

 private:
  enum class Step { hello, select, subscribe, ping };
  void add(Step step, std::vector<std::string_view> words);
  [[noreturn]] void refuse(Step step, const std::string& reply) const;

  std::string server_;
  std::string bytes_;
  std::vector<Step> steps_;
  std::size_t taken_ = 0;
};

}  // namespace sluice::redis
