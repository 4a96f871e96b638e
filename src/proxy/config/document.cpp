#include "proxy/config/document.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace sluice::proxy::config {
namespace {

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

/// How many bytes the character at the front of `rest` has; 0: it is none, or a control character.
std::size_t size_of_character(std::string_view rest) {
  const unsigned first = byte_of(rest[0]);
  const bool control = first < 0x20 && first != '\t' && first != '\n' && first != '\r';
  return control || first == 0x7f ? 0 : utf8_length(rest);
}

bool is_mark(std::string_view line, std::string_view mark) {
  return line.starts_with(mark) &&
         (line.size() == mark.size() || std::string_view{" \t\r"}.contains(line[mark.size()]));
}

void check_line(std::size_t number, std::string_view line) {
  if (is_mark(line, "---") || is_mark(line, "..."))
    throw Problem{number, fmt::format("'{}' is not allowed; a file is one document without marks",
                                      line.substr(0, 3))};
  if (line.starts_with('%'))
    throw Problem{number, "a YAML directive (%) is not allowed; remove the line"};
  for (auto rest = line; !rest.empty();) {
    const auto size = size_of_character(rest);
    if (size == 0)
      throw Problem{number, fmt::format("byte 0x{:02x} in column {} is not text in UTF-8",
                                        byte_of(rest[0]), line.size() - rest.size() + 1)};
    rest.remove_prefix(size);
  }
}

/// Refuses what is not UTF-8, control characters, directives (%) and document marks (---, ...),
/// whatever YAML makes of them.
void check_text(std::string_view yaml) {
  for (std::size_t number = 1; !yaml.empty(); ++number) {
    const auto end = yaml.find('\n');
    check_line(number, yaml.substr(0, end));
    yaml.remove_prefix(end == std::string_view::npos ? yaml.size() : end + 1);
  }
}

constexpr std::size_t most_bytes = std::size_t{4} << 20;
constexpr std::size_t most_nodes = 200'000;
constexpr std::size_t most_depth = 8;

std::size_t line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 1 : static_cast<std::size_t>(mark.line) + 1;
}

/// Builds the tree from yaml-cpp's events. `open_` is the path from the root to the present node.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view yaml) : yaml_(yaml) {}

  Node take() { return std::move(root_).value_or(Node{.kind = Node::Kind::map}); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  /// Plain words that YAML reads as null are text here, as for twemproxy.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    static constexpr std::array<std::string_view, 4> words{"null", "Null", "NULL", "~"};
    const auto rest = yaml_.substr(std::min(yaml_.size(), static_cast<std::size_t>(mark.pos)));
    const auto* const word =
        std::ranges::find_if(words, [&](auto each) { return rest.starts_with(each); });
    add_scalar(mark, word == words.end() ? "" : std::string{*word});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Problem{line_of(mark), "an alias (*name) is not allowed; write the value itself"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    add_scalar(mark, value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<std::pair<std::string, std::size_t>> key;  // of a map: read, its value is next
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      throw Problem{line_of(mark), "an anchor (&name) is not allowed; write the value itself"};
  }

  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Problem{line_of(mark), "a tag (!name) is not allowed; write the value alone"};
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().key;
  }

  void add_scalar(const YAML::Mark& mark, std::string text) {
    if (wants_key())
      open_.back().key.emplace(std::move(text), line_of(mark));
    else
      add(Node{.kind = Node::Kind::scalar, .text = std::move(text), .line = line_of(mark)});
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style, Node::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (wants_key()) throw Problem{line_of(mark), "a list or map cannot be the name of a setting"};
    if (open_.size() >= most_depth)
      throw Problem{line_of(mark), fmt::format("nested more than {} deep", most_depth)};
    open_.push_back(
        {Node{.kind = kind, .line = line_of(mark), .flow = style == YAML::EmitterStyle::Flow},
         std::nullopt});
  }

  void close() {
    auto node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (++nodes_ > most_nodes)
      throw Problem{node.line, fmt::format("more than {} values in one file", most_nodes)};
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    auto& [parent, key] = open_.back();
    if (key) {
      std::tie(node.key, node.line) = *std::exchange(key, std::nullopt);
    }
    parent.items.push_back(std::move(node));
  }

  std::string_view yaml_;
  std::vector<Open> open_;
  std::optional<Node> root_;
  std::size_t nodes_ = 0;
};

}  // namespace

Node parse_document(std::string_view yaml) {
  if (yaml.size() > most_bytes)
    throw Problem{1, fmt::format("the file has more than {} bytes", most_bytes)};
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (yaml.starts_with(byte_order_mark)) yaml.remove_prefix(byte_order_mark.size());
  check_text(yaml);
  std::istringstream stream{std::string{yaml}};
  Builder builder{yaml};
  try {
    YAML::Parser parser{stream};
    parser.HandleNextDocument(builder);
    if (parser) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& wrong) {
    throw Problem{line_of(wrong.mark), fmt::format("this is not YAML: {}", wrong.msg)};
  }
  return builder.take();
}

std::string quoted(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./") == std::string_view::npos;
  if (plain) return std::string{text};
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace sluice::proxy::config
