/// Text for browsers, of which no byte from outside is taken for markup.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::server {

/// Markup that stands in the source: there is no other way to one.
class Markup {
 public:
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  friend consteval Markup operator""_html(const char* text, std::size_t size);
  consteval explicit Markup(std::string_view text) : text_(text) {}

  std::string_view text_;
};

consteval Markup operator""_html(const char* text, std::size_t size) {
  return Markup{std::string_view{text, size}};
}

/// A piece of a page. What is put into it is escaped, but for markup and pieces: in an element, or
/// in an attribute between quotation marks.
///
///     Html piece;
///     piece << "<h1>"_html << sale.name << "</h1>"_html;
class Html {
 public:
  Html() = default;

  Html& operator<<(Markup markup) {
    text_ += markup.text();
    return *this;
  }
  Html& operator<<(const Html& piece) {
    text_ += piece.text_;
    return *this;
  }
  Html& operator<<(std::string_view text);
  template <std::integral Number>
    requires(!std::same_as<Number, bool> && !std::same_as<Number, char>)
  Html& operator<<(Number number) {
    text_ += std::to_string(number);
    return *this;
  }

  bool empty() const noexcept { return text_.empty(); }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

}  // namespace sluice::server
