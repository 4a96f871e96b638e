/// What the doctor finds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::cli {

enum class Severity { ok, warning, danger, unknown };

struct Finding {
  std::string check;
  Severity severity;
  std::string found;
  std::string advice{};  ///< empty when all is well

  friend bool operator==(const Finding&, const Finding&) = default;
};

class Findings {
 public:
  void add(std::string check, Severity severity, std::string found, std::string advice = {}) {
    all_.push_back({std::move(check), severity, std::move(found), std::move(advice)});
  }
  /// What was found before is told, whatever the server answers to this.
  template <class Check>
  void attempt(const std::string& name, Check check) try {
    check();
  } catch (const Error& error) {
    add(name, Severity::danger, error.message(),
        error.errc() == Errc::authentication
            ? "the users of locks, numbers and sales need this, too"
            : "this is no server, line or proxy to trust: find out who answers there");
  }
  const std::vector<Finding>& all() const noexcept { return all_; }
  void forget_what_is_well() {
    std::erase_if(all_, [](const Finding& one) { return one.severity == Severity::ok; });
  }

 private:
  std::vector<Finding> all_;
};

}  // namespace sluice::cli
