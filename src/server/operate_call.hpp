/// One call of the operators' API, as a row of a table.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/json_value.hpp"
#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/operators.hpp"
#include "server/shop.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

/// What an operator asks, once it is known that he may, and that it is well formed.
struct Asked {
  Operator by;
  http::Request request;
  JsonValue body;
  std::shared_ptr<Offer> offer;  ///< of the path; null where that names no sale
  std::string after;             ///< of a page
  std::size_t most = 100;        ///< on a page

  /// What it turned out to be of, for the journal.
  struct Found {
    std::string sale;  ///< where the path names none
    std::string order;
    std::int64_t amount = 0;
    std::string currency;
  };
  Found found = {};

  const std::string& sale() const { return offer->name(); }
  /// What a final call names as `confirm`: the sale; where there is none the provider of the path.
  const std::string& confirmed() const {
    return offer ? offer->name() : request.parameter("provider");
  }
  /// A member of the body. REQUIRES: the table has it, and needs it.
  std::int64_t number(std::string_view name) const { return *body.find(name)->as_integer(); }
  /// 0: it is not there.
  std::int64_t count(std::string_view name) const {
    const auto* const value = body.find(name);
    return value ? *value->as_integer() : 0;
  }
  /// Empty: it is not there.
  std::string text(std::string_view name) const {
    const auto* const value = body.find(name);
    return value ? *value->as_text() : std::string{};
  }
};

/// A member of a body.
struct BodyMember {
  enum class Kind { count, text, words };  ///< words: a text that is not empty
  const char* name;
  Kind kind = Kind::count;
  bool is_needed = true;
};

/// What a list has of one part of a sale.
struct Listed {
  std::vector<Json> items;
  std::string next;  ///< where the next page of this part begins; empty: this was its last
};

/// A place in a part of a sale, as texts outside have it: of a sale with buckets it begins with the
/// bucket.
std::string text_outside(OfferedSale& sale, const Sale& part, const std::string& within);

/// A page of a list that a sale has part by part, as a member of that name, and `next`.
using ReadPart = std::function<Expected<Listed, http::Response>(
    Sale& part, const std::string& after, std::size_t most)>;
http::Response page_over_parts(Asked& asked, const char* name, const ReadPart& read);

http::Response wrong_parameter(std::string_view detail);

struct OperateCall {
  std::string method;
  std::string path;
  std::string operation;  ///< of a POST: the action in the journal
  std::string summary;
  std::vector<BodyMember> body = {};
  /// Cannot be undone: it carries Asked::confirmed() as `confirm`.
  bool is_final = false;
  bool has_pages = false;  ///< `after` and `most`
  std::vector<http::Parameter> parameters = {};
  http::Answer answer = {204, "It is done", {}};
  std::vector<const http::ProblemType*> problems = {};
  /// Of these one is done at a time, for all operators: it takes long. Empty: of each operator.
  std::string subject = {};
  bool asks_database = true;  ///< false: the store alone, or neither
  /// How long it may take; empty: BlockingLimits::answer.
  std::optional<std::chrono::milliseconds> within = {};
  /// In a thread that may block. The database is connected to when it is asked for.
  std::function<http::Response(Asked&, const BlockingThreads::Orders&)> serve;
};

/// The body of a call, with the members that the table has and no others; or the answer to it.
Expected<JsonValue, http::Response> body_of_call(const OperateCall& call, const std::string& text);
/// What the journal says of a call: the letter, and the members of the body.
std::string detail_of(const OperateCall& call, const Asked& asked);

// For the interface.
std::string schema_of(const OperateCall& call);
std::vector<const http::ProblemType*> problems_of(const OperateCall& call);
std::vector<http::Parameter> parameters_of(const OperateCall& call);

}  // namespace sluice::server
