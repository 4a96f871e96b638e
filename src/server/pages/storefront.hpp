/// How a shop shows itself to buyers: its name and colours, and of each sale a name, a text and a
/// picture. One JSON file has it, which `sluice serve --shop` names:
///
///     {"name": "Tea House", "colours": {"light": {"accent": "#7a1f1f"}},
///      "sales": {"tea": {"name": {"en": "Red tea", "de": "Roter Tee"}, "picture": "tea.jpg"}}}
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "server/pages/texts.hpp"

namespace sluice::server {

/// One for all languages, or one for each.
class ShopText {
 public:
  static constexpr std::string_view for_all = "";

  void put(std::string language, std::string text) {
    by_language_.insert_or_assign(std::move(language), std::move(text));
  }
  bool empty() const noexcept { return by_language_.empty(); }
  /// That of the language, or of the one that it is a kind of; else the English one, or any. Empty:
  /// there is none.
  std::string_view in(std::string_view language) const;

 private:
  std::map<std::string, std::string, std::less<>> by_language_;
};

struct ShopPicture {
  std::string url = {};     ///< for a page; empty: there is no picture
  std::string origin = {};  ///< of another host: "https://cdn.example"; empty: it is ours
  std::string_view media = {};
  std::string bytes = {};  ///< of ours
};

struct SaleLook {
  ShopText name;
  ShopText text;
  ShopPicture picture;
  ShopText picture_text;  ///< for a reader who does not see the picture
};

/// Threads: any, once it is made.
class Storefront {
 public:
  static constexpr std::string_view pictures = "/sales/assets/pictures/";

  /// A shop without a name, whose sales are called as programs call them.
  Storefront() = default;
  /// Reads the file, and the pictures beside it. Throws Error{bad_argument}: "shop.json: sales.tea:
  /// what is wrong, and what to do".
  static Storefront load(const std::string& file);

  std::string_view name(const Texts& texts) const { return name_.in(texts.language()); }
  /// As buyers call the sale.
  std::string_view name_of(std::string_view sale, const Texts& texts) const;
  /// Null: the file says nothing of it.
  const SaleLook* find(std::string_view sale) const;
  /// A picture of ours by the end of its URL; null: there is none.
  const ShopPicture* find_picture(std::string_view name) const;
  /// A style sheet; empty: the colours are those of buyers.css.
  const std::string& colours() const noexcept { return colours_; }

 private:
  friend class ShopFile;

  ShopText name_;
  std::string colours_;
  std::map<std::string, SaleLook, std::less<>> sales_;
};

}  // namespace sluice::server
