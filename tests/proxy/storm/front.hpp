/// The proxy in front of the servers: within this process, or as the program, which can be
/// upgraded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/support/proxy_program.hpp"
#include "proxy/support/proxy_under_test.hpp"

namespace sluice::test {

class Front {
 public:
  Front(const PoolLines& pool, bool as_program, const std::string& path) {
    if (as_program)
      program_.emplace(pool.lines, ProgramOptions{.process = {"workers: 2", "drain_timeout: 4000"},
                                                  .arguments = {},
                                                  .program = path});
    else
      inside_.emplace(pool);
  }

  std::uint16_t port() const noexcept { return program_ ? program_->port() : inside_->port(); }
  /// Null: it is within this process.
  ProxyProgram* program() noexcept { return program_ ? &*program_ : nullptr; }

 private:
  std::optional<ProxyUnderTest> inside_;
  std::optional<ProxyProgram> program_;
};

}  // namespace sluice::test
