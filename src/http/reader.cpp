#include "http/reader.hpp"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cctype>
#include <cstring>
#include <optional>
#include <utility>

#include "base/integer.hpp"
#include "http/text.hpp"

namespace sluice::http {
namespace {

namespace beast = boost::beast::http;
using boost::beast::error_code;
using Text = boost::beast::string_view;

std::string_view view(Text text) noexcept { return {text.data(), text.size()}; }

/// A host and a port as RFC 3986 spells them, no more: no user, no path.
bool is_host(std::string_view text) noexcept { return has_only(text, "-._~%!$&'()*+;=:[]"); }

bool is_hex(char c) noexcept { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

/// A path and a query as RFC 3986 spells them, and what browsers leave as it is (the "query" set of
/// WHATWG's URL): brackets, braces, '\\', '^', '`', '|'.
bool is_target(std::string_view text) noexcept {
  if (!has_only(text, "-._~%!$&'()*+,;=:@/?[]\\^`{|}")) return false;
  for (auto at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1))
    if (text.size() < at + 3 || !is_hex(text[at + 1]) || !is_hex(text[at + 2])) return false;
  return true;
}

/// "0", CR LF, CR LF: with less no chunked body ends. Beast 1.74 asserts that what follows the last
/// chunk's line does not come in smaller pieces.
constexpr std::size_t shortest_end = 5;

}  // namespace

/// What Beast finds becomes a Request. A refusal of ours ends its work with an error.
class RequestReader::Parser final : public beast::basic_parser<true> {
 public:
  explicit Parser(const Limits& limits) : limits_(limits) {
    eager(true);
    header_limit(static_cast<std::uint32_t>(limits.head));
    body_limit(limits.body);
  }

  Request& request() noexcept { return request_; }
  /// Ours, if it was ours.
  const Refusal& refusal() const noexcept { return refusal_; }
  bool expects_continue() const noexcept { return expects_continue_; }
  void continued() noexcept { expects_continue_ = false; }
  /// Beast unfolds them. `bytes`: what was parsed last.
  bool has_folded_trailers(std::string_view bytes) const noexcept {
    if (!trailers_) return false;
    bytes.remove_prefix(static_cast<std::size_t>(trailers_ - bytes.data()));
    return bytes.find("\r\n ") != bytes.npos || bytes.find("\r\n\t") != bytes.npos;
  }
  std::size_t parse(std::string_view bytes, error_code& error) {
    trailers_ = nullptr;
    return put(boost::asio::const_buffer{bytes.data(), bytes.size()}, error);
  }

 private:
  void refuse(error_code& error, const ProblemType& problem, std::string_view detail) {
    refusal_ = {&problem, detail};
    error = beast::error::bad_value;
  }

  void on_request_impl(beast::verb, Text method, Text target, int version,
                       error_code& error) override {
    request_.method_ = view(method);
    request_.version_ = version;
    if (version != 10 && version != 11)
      return refuse(error, problems::version_not_supported, "HTTP/1.1 and HTTP/1.0 are");
    auto path = view(target);
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (!same_word(path.substr(0, scheme.size()), scheme)) continue;
      path.remove_prefix(scheme.size());
      const auto host = path.substr(0, path.find_first_of("/?#"));
      if (host.empty() || !is_host(host))
        return refuse(error, problems::bad_request, "the target has no host");
      path.remove_prefix(host.size());
      if (path.empty() || path.front() == '?')
        return refuse(error, problems::bad_request, "the target has no path");
    }
    if (!path.starts_with('/') || path.find('#') != std::string_view::npos)
      return refuse(error, problems::bad_request, "the target is no path");
    if (!is_target(path))
      return refuse(error, problems::bad_request, "the target has a byte that must be escaped");
    const auto question = path.find('?');
    request_.path_ = path.substr(0, question);
    if (question != std::string_view::npos) request_.query_ = path.substr(question + 1);
  }

  void on_response_impl(int, Text, int, error_code&) override {}

  void on_field_impl(beast::field known, Text name, Text value, error_code& error) override {
    if (has_head_) return;  // a trailer
    if (request_.fields_.size() == limits_.fields)
      return refuse(error, problems::head_too_large, "too many fields");
    request_.fields_.push_back({view(name), view(value)});
    switch (known) {
      case beast::field::host:
        if (++hosts_ > 1) return refuse(error, problems::bad_request, "more than one Host");
        if (!is_host(view(value))) return refuse(error, problems::bad_request, "Host is no host");
        break;
      case beast::field::content_length:
        if (++lengths_ > 1 || !is_digits(view(value)))
          return refuse(error, problems::bad_request, "Content-Length is not one number");
        break;
      case beast::field::transfer_encoding:
        ++encodings_;
        if (!same_word(view(value), "chunked"))
          return refuse(error, problems::not_implemented,
                        "of the transfer codings only chunked is known");
        break;
      case beast::field::expect:
        if (!same_word(view(value), "100-continue"))
          return refuse(error, problems::expectation_failed, "only 100-continue is known");
        expects_continue_ = request_.version_ == 11;
        break;
      default: break;
    }
  }

  void on_header_impl(error_code& error) override {
    has_head_ = true;
    request_.keep_alive_ = keep_alive();
    // Of a chunk whose line comes in pieces Beast 1.74 takes the size from its limit each time.
    if (chunked()) body_limit(boost::none);
    if (request_.version_ == 11 && hosts_ == 0)
      return refuse(error, problems::bad_request, "Host is missing");
    if (encodings_ > 1 || (encodings_ == 1 && (lengths_ != 0 || request_.version_ == 10)))
      return refuse(error, problems::bad_request, "Transfer-Encoding and something against it");
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(Text body, error_code&) override {
    request_.body_.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t size, Text extension, error_code& error) override {
    // Beast 1.74 takes any byte within quotes.
    if (std::ranges::any_of(extension, is_control))
      return refuse(error, problems::bad_request, "a chunk's extension has a control character");
    if (size == 0) trailers_ = extension.data() + extension.size();
    if (size > limits_.body - request_.body_.size())
      refuse(error, problems::body_too_large, "the body is too large");
  }
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, error_code&) override {
    request_.body_.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  const Limits& limits_;
  Request request_;
  Refusal refusal_;
  std::size_t hosts_ = 0, lengths_ = 0, encodings_ = 0;
  bool has_head_ = false;
  const char* trailers_ = nullptr;  // where they begin in what is parsed now
  bool expects_continue_ = false;
};

RequestReader::RequestReader(const Limits& limits) noexcept : limits_(&limits) {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;

std::size_t RequestReader::refuse(const ProblemType& problem, std::string_view detail) {
  refusal_ = {&problem, detail};
  stage_ = Stage::refused;
  parser_.reset();
  return 0;
}

std::size_t RequestReader::read(std::string_view bytes) {
  if (stage_ == Stage::body) return read_body(bytes);
  std::size_t empty_lines = 0;
  if (stage_ == Stage::between)
    while (bytes.substr(empty_lines).starts_with("\r\n")) empty_lines += 2;
  return empty_lines + read_head(bytes.substr(empty_lines));
}

/// Gives where the body begins; 0: not yet, or refused. Each byte is looked at once, however they
/// come.
std::size_t RequestReader::end_of_head(std::string_view bytes) {
  for (auto from = searched_;;) {
    const auto line = bytes.find('\n', from);
    if (line == std::string_view::npos) {
      searched_ = bytes.size();
      return 0;
    }
    if (line == 0 || bytes[line - 1] != '\r')
      return refuse(problems::bad_request, "a line does not end with CR LF");
    if (line >= 3 && bytes[line - 2] == '\n') return line + 1;
    if (line + 1 == bytes.size()) {  // the byte behind it decides
      searched_ = line;
      return 0;
    }
    if (bytes[line + 1] == ' ' || bytes[line + 1] == '\t')
      return refuse(problems::bad_request, "a field is folded over lines");
    from = line + 1;
  }
}

std::size_t RequestReader::read_head(std::string_view bytes) {
  if (bytes.empty() || bytes == "\r") return 0;
  stage_ = Stage::head;
  const auto size = end_of_head(bytes.substr(0, limits_->head));
  if (stage_ == Stage::refused) return 0;
  if (size == 0) {
    if (bytes.size() >= limits_->head) refuse(problems::head_too_large, "the head is too large");
    return 0;
  }
  begin(bytes.substr(0, size));
  if (stage_ != Stage::body) return size;
  return size + read_body(bytes.substr(size));
}

/// The head is copied once, to where the request's views stay good.
void RequestReader::begin(std::string_view head) {
  searched_ = 0;
  parser_ = std::make_unique<Parser>(*limits_);
  auto& request = parser_->request();
  request.head_.assign(head.begin(), head.end());
  request.fields_.reserve(16);
  stage_ = Stage::body;
  feed({request.head_.data(), request.head_.size()});
  // Of a line that is too short Beast says that more must come.
  if (stage_ == Stage::body && !parser_->is_header_done())
    refuse(problems::bad_request, "this is not HTTP/1.1");
}

/// A line of a chunk, or all trailers, have the room of a head, in whatever pieces they come.
std::size_t RequestReader::read_body(std::string_view bytes) {
  std::size_t used = 0;
  for (;;) {
    const auto rest = bytes.substr(used);
    if (rest.empty() || (parser_->chunked() && rest.size() < shortest_end)) return used;
    const auto taken = feed(rest.substr(0, limits_->head));
    used += taken;
    if (stage_ != Stage::body) return used;
    if (taken == 0 && rest.size() >= limits_->head)
      return refuse(problems::bad_request, "a chunk's line or the trailers are too large");
    if (taken == 0) return used;
  }
}

std::size_t RequestReader::feed(std::string_view bytes) {
  error_code error;
  const auto used = parser_->parse(bytes, error);
  if (error && error != beast::error::need_more) {
    if (const auto ours = parser_->refusal(); ours.problem) {
      refuse(*ours.problem, ours.detail);
    } else if (error == beast::error::body_limit) {
      refuse(problems::body_too_large, "the body is too large");
    } else if (error == beast::error::bad_version) {
      refuse(problems::version_not_supported, "HTTP/1.1 and HTTP/1.0 are");
    } else {
      refuse(problems::bad_request, "this is not HTTP/1.1");
    }
    return 0;
  }
  if (!parser_->is_done()) return used;
  if (parser_->has_folded_trailers(bytes.substr(0, used)))
    return refuse(problems::bad_request, "a field is folded over lines");
  stage_ = Stage::done;
  return used;
}

bool RequestReader::take_expectation() noexcept {
  if (stage_ != Stage::body || !parser_->expects_continue()) return false;
  parser_->continued();
  return true;
}

Request RequestReader::take_request() {
  stage_ = Stage::between;
  auto request = std::move(parser_->request());
  parser_.reset();
  return request;
}

}  // namespace sluice::http
