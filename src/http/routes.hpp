/// What a server answers: one table, from which requests are dispatched and OpenAPI is written.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/problem.hpp"
#include "http/request.hpp"
#include "http/responder.hpp"

namespace sluice::http {

/// Called in the thread of a loop, which serves many clients: it must not block. What takes longer
/// moves the request and the responder elsewhere. What it throws is logged and answered by 500.
using Handler = std::function<void(Request&& request, Responder&& respond)>;

/// Beside those of the path, which the template names.
struct Parameter {
  std::string name;
  std::string in;  ///< "query" or "header"
  std::string description;
  bool required = false;
  std::string schema = R"({"type":"string"})";
};

/// What a route answers when it does not refuse: a row for each status, and for each media type.
struct Answer {
  int status = 200;
  std::string description;
  std::string schema;  ///< JSON Schema; empty: no body
  std::string media = "application/json";
};

struct Route {
  std::string method;     ///< "GET" serves HEAD, too
  std::string path;       ///< "/v1/orders/{order}"; a name stands for one segment that is not empty
  std::string operation;  ///< its one name: operationId, and the label of its metrics
  std::string summary;
  std::vector<Parameter> parameters;
  std::string request;  ///< JSON Schema of the body; empty: it takes none
  std::vector<Answer> answers;
  std::vector<const ProblemType*> problems;  ///< beside those of this library
  /// In which the handler shows problems, beside problem+json: a page has them for people.
  std::string problems_media{};
  /// Names of ApiDocument::credentials with blanks between, each enough; empty: none is needed.
  std::string credentials;
  Handler handler;
};

class Routes {
 public:
  Routes();
  ~Routes();
  Routes(Routes&&) noexcept;
  Routes& operator=(Routes&&) noexcept;

  /// Throws Error{bad_argument} for a template that is none, and for a route or an operation that
  /// is there already.
  Routes& add(Route route);
  const std::vector<Route>& all() const noexcept { return routes_; }

  struct Found {
    const Route* route = nullptr;  ///< null: see `allow`
    std::size_t index = 0;         ///< in all()
    std::string
        allow;  ///< of no route: the methods that the path has; empty: there is no such path
    bool is_malformed = false;  ///< an escape of the path is wrong, or it is not UTF-8
  };
  /// The route of a request, which gets the values of its parameters. A literal segment goes before
  /// a parameter, and has no spelling with escapes.
  Found find(Request& request) const;

 private:
  struct Node;
  std::string methods_of(const Node& node) const;

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> parameters_;  // of each, in the order of its path
  std::unique_ptr<Node> root_;
};

}  // namespace sluice::http
