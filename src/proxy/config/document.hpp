/// A configuration file as a tree of plain text with line numbers: the one place that knows YAML.
/// It refuses what twemproxy refuses (anchors, aliases, tags, directives, document marks), so that
/// a small file cannot become a large tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::proxy::config {

/// What is wrong in a line of the file, and what to do.
class Problem : public std::runtime_error {
 public:
  Problem(std::size_t line, const std::string& text) : std::runtime_error(text), line_(line) {}
  std::size_t line() const noexcept { return line_; }

 private:
  std::size_t line_;
};

struct Node {
  enum class Kind : std::uint8_t { scalar, sequence, map };

  Kind kind = Kind::scalar;
  std::string key;          ///< of a member of a map
  std::string text;         ///< of a scalar
  std::size_t line = 0;     ///< of the key, if it has one; the first is 1
  bool flow = false;        ///< written as [a, b] or {a: b}
  std::vector<Node> items;  ///< of a sequence or map, as written; a key may be there twice
};

/// The root. Throws Problem.
Node parse_document(std::string_view yaml);

/// A text as it stands in YAML, in quotes where it needs them.
std::string quoted(std::string_view text);

}  // namespace sluice::proxy::config
