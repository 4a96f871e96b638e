// Requests of any bytes: in pieces they are the same as whole, and each that is understood is what
// a strict reading of RFC 9112 understands, so that nothing is smuggled behind it.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/reader.hpp"
#include "support/fuzz_require.hpp"

namespace sluice::http {
namespace {

/// What was understood of a request.
struct Understood {
  std::string method, target, body;
  std::size_t fields = 0;
  std::size_t end = 0;  // in the input
  bool operator==(const Understood&) const = default;
};

struct Reading {
  std::vector<Understood> requests;
  const ProblemType* refusal = nullptr;
  std::size_t waiting = 0;  // bytes that were not used
};

/// The end of a chunked body is looked at when five bytes of it are there: less may be refused by
/// one and not yet by the other.
bool is_same(const Reading& pieces, const Reading& whole) {
  const bool waits = !pieces.refusal && pieces.waiting < 5;
  return pieces.requests == whole.requests && (waits || pieces.refusal == whole.refusal);
}

/// As a connection does: what is not used comes again with more behind it.
Reading read(std::string_view input, std::size_t piece) {
  static const Limits limits{.head = 512, .fields = 8, .body = 256};
  RequestReader reader{limits};
  Reading reading;
  std::size_t used = 0;
  for (std::size_t come = 0; come < input.size();) {
    come = std::min(input.size(), come + piece);
    for (;;) {
      // A copy of its own, so that a look behind the end is found.
      const std::vector<char> bytes(input.begin() + static_cast<std::ptrdiff_t>(used),
                                    input.begin() + static_cast<std::ptrdiff_t>(come));
      used += reader.read({bytes.data(), bytes.size()});
      test::require(used <= come, "more was used than there is");
      if (reader.stage() == RequestReader::Stage::refused) {
        reading.refusal = reader.refusal().problem;
        return reading;
      }
      if (reader.stage() != RequestReader::Stage::done) break;
      const auto request = reader.take_request();
      auto target = std::string{request.path()};
      if (!request.raw_query().empty()) (target += '?') += request.raw_query();
      reading.requests.push_back({.method = std::string{request.method()},
                                  .target = std::move(target),
                                  .body = request.body(),
                                  .fields = request.fields().size(),
                                  .end = used});
    }
  }
  reading.waiting = input.size() - used;
  return reading;
}

/// Lines, colons and lengths, and nothing lenient: an independent reading of one request.
class Strict {
 public:
  explicit Strict(std::string_view input) : rest_(input) {}

  std::optional<Understood> next() {
    const auto whole = rest_;
    while (rest_.starts_with("\r\n")) rest_.remove_prefix(2);
    Understood request;
    const auto first = line();
    if (!first) return {};
    const auto blank = first->find(' ');
    const auto last = first->rfind(' ');
    if (blank == std::string_view::npos || blank == last) return {};
    request.method = first->substr(0, blank);
    request.target = origin_form(first->substr(blank + 1, last - blank - 1));
    const auto version = first->substr(last + 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return {};
    std::optional<std::size_t> length;
    bool is_chunked = false;
    int hosts = 0;
    for (;;) {
      const auto field = line();
      if (!field) return {};
      if (field->empty()) break;
      const auto colon = field->find(':');
      if (colon == std::string_view::npos || colon == 0) return {};
      std::string name{field->substr(0, colon)};
      if (name.find_first_of(" \t") != std::string::npos) return {};
      std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      });
      auto value = field->substr(colon + 1);
      while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
      while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
      ++request.fields;
      if (name == "host") ++hosts;
      if (name == "content-length") {
        if (length || is_chunked) return {};
        length = number(value, 10);
        if (!length) return {};
      }
      if (name == "transfer-encoding") {
        if (length || is_chunked || value.size() != 7) return {};
        is_chunked = true;
      }
    }
    if (hosts > 1 || (hosts == 0 && version == "HTTP/1.1")) return {};
    if (is_chunked ? !chunks(request.body) : !bytes(request.body, length.value_or(0))) return {};
    request.end = (end_ += whole.size() - rest_.size());
    return request;
  }

 private:
  static std::string origin_form(std::string_view target) {
    if (!target.starts_with('/'))
      if (const auto scheme = target.find("://"); scheme != std::string_view::npos) {
        target.remove_prefix(scheme + 3);
        target.remove_prefix(std::min(target.size(), target.find('/')));
      }
    std::string text{target};
    if (text.ends_with('?') && text.find('?') == text.size() - 1) text.pop_back();
    return text;
  }
  static std::optional<std::size_t> number(std::string_view text, int base) {
    std::size_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (wrong != std::errc{} || end != text.data() + text.size() || text.starts_with('-'))
      return {};
    return value;
  }
  std::optional<std::string_view> line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos || end == 0 || rest_[end - 1] != '\r') return {};
    const auto text = rest_.substr(0, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool bytes(std::string& into, std::size_t count) {
    if (rest_.size() < count) return false;
    into += rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  bool chunks(std::string& into) {
    for (;;) {
      const auto head = line();
      if (!head) return false;
      // An extension stands behind the number, or blanks (RFC 9112, 7.1.1: BWS).
      const auto size = number(head->substr(0, head->find_first_of("; \t")), 16);
      if (!size) return false;
      if (*size == 0) break;
      std::string end;
      if (!bytes(into, *size) || !bytes(end, 2) || end != "\r\n") return false;
    }
    for (;;) {
      const auto trailer = line();
      if (!trailer) return false;
      if (trailer->empty()) return true;
    }
  }

  std::string_view rest_;
  std::size_t end_ = 0;
};

}  // namespace
}  // namespace sluice::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::http;
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 61;
  const std::string_view input{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto whole = read(input, std::max<std::size_t>(1, input.size()));
  sluice::test::require(is_same(read(input, piece), whole),
                        "pieces are another request than the whole");
  sluice::test::require(is_same(read(input, 1), whole), "bytes are another request than the whole");
  Strict strict{input};
  for (const auto& request : whole.requests) {
    const auto understood = strict.next();
    sluice::test::require(understood.has_value(), "a request that is none was understood");
    sluice::test::require(*understood == request, "a request was understood as another");
  }
  return 0;
}
