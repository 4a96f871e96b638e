/// Requests off the front of a connection's bytes. It decides and does no I/O.
///
/// The grammar is Boost.Beast's, behind this one door. Stricter than it: line ends are CR LF, a
/// value is not folded over lines, a target has no byte that must be escaped, Host comes exactly
/// once (HTTP/1.1), Content-Length is one number, Transfer-Encoding is `chunked` alone, and the two
/// never meet. What two servers could understand differently is refused, and the connection ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http/limits.hpp"
#include "http/problem.hpp"
#include "http/request.hpp"

namespace sluice::http {

class RequestReader {
 public:
  enum class Stage : std::uint8_t {
    between,  ///< nothing of a request has come
    head,
    body,
    done,    ///< take_request() has it
    refused  ///< refusal() says why; nothing more is read
  };

  explicit RequestReader(const Limits& limits) noexcept;
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) = delete;

  /// Reads on, to the end of one request at most, and gives how many bytes it has used. The others
  /// must come again with more behind them. REQUIRES: stage() is not `done` or `refused`.
  std::size_t read(std::string_view bytes);

  Stage stage() const noexcept { return stage_; }
  /// At stage `body`: the client waits for "100 Continue". Once.
  bool take_expectation() noexcept;
  /// REQUIRES: stage() is `done`. It is `between` then.
  Request take_request();

  struct Refusal {
    const ProblemType* problem = nullptr;
    std::string_view detail;  ///< a literal
  };
  const Refusal& refusal() const noexcept { return refusal_; }

 private:
  class Parser;

  std::size_t read_head(std::string_view bytes);
  std::size_t read_body(std::string_view bytes);
  std::size_t end_of_head(std::string_view bytes);
  void begin(std::string_view head);
  std::size_t feed(std::string_view bytes);
  std::size_t refuse(const ProblemType& problem, std::string_view detail);

  const Limits* limits_;
  std::unique_ptr<Parser> parser_;  // from the end of a head to the end of its body
  Refusal refusal_;
  std::size_t searched_ = 0;  // of a head without an end: so much has been looked through
  Stage stage_ = Stage::between;
};

}  // namespace sluice::http
