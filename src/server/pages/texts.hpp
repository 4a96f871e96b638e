/// The texts of the pages for buyers, in one language.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "server/pages/html.hpp"
#include "sluice/clock.hpp"

namespace sluice::server {

/// Threads: any.
class Texts {
 public:
  /// What stands in place of {name}.
  struct Put {
    std::string_view name;
    Html value;
  };

  /// Of a JSON object whose members are texts. `like`: the file has its keys, each with its
  /// {names}; null: nothing is asked of it. Throws Error{bad_argument}: "fr.json: what is wrong".
  Texts(std::string language, std::string_view json, const std::string& file, const Texts* like);

  /// The tag (BCP 47): "de".
  const std::string& language() const noexcept { return language_; }
  bool has(std::string_view key) const { return all_.contains(key); }

  /// The text of that key, escaped. REQUIRES: has().
  Html say(std::string_view key, std::initializer_list<Put> puts = {}) const;
  /// "12,000"
  Html number(std::int64_t number) const;
  /// "1,250.00 CNY" of 125000: as many places as the currency has.
  Html money(std::int64_t amount, std::string_view currency) const;
  /// "2026-11-11 12:00:00 UTC", which scripts write by the clock of the place.
  Html time(WallTime instant) const;
  /// "about 3 minutes"
  Html about(std::chrono::milliseconds time) const;

 private:
  std::string grouped(std::int64_t number) const;

  std::string language_;
  std::map<std::string, std::string, std::less<>> all_;
};

}  // namespace sluice::server
