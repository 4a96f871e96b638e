/// A refusal of the API as a page, in words for people.
#pragma once

#include <string>

#include "http/response.hpp"
#include "server/pages/frame.hpp"

namespace sluice::server {

struct RefusalView {
  std::string sale;  ///< where he may go back to; empty: there is none
  Html again = {};   ///< a form that repeats what failed
  /// It stands where a page was asked for that refreshes by itself, and would go on to.
  bool comes_back = false;
};

/// What the problem is.
Html problem_html(const PageReader& reader, const http::ProblemType& type);

/// `refusal`: a problem. Its status and Retry-After stay.
http::Response refusal_page(const http::Response& refusal, const RefusalView& view,
                            const PageReader& reader);

}  // namespace sluice::server
