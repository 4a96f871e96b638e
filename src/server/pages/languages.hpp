/// The languages of the pages for buyers: those of pages/texts, which are part of the program, and
/// those of a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/request.hpp"
#include "server/pages/texts.hpp"

namespace sluice::server {

/// Threads: any.
class Languages {
 public:
  /// `folder`: each file of it whose name is a language tag, fr.json, is one more language, or
  /// stands in place of ours; empty: there are none. Throws Error{bad_argument}.
  explicit Languages(const std::string& folder = {});

  /// English first.
  const std::vector<Texts>& all() const noexcept { return all_; }
  /// Null: it is not there, nor is the one that it is a kind of ("de" of "de-AT").
  const Texts* find(std::string_view tag) const;
  /// By Accept-Language (RFC 9110, 12.5.4); English where none of its languages is there.
  const Texts& best(const http::Request& request) const;

 private:
  std::vector<Texts> all_;
};

}  // namespace sluice::server
