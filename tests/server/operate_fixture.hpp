/// A service with operators, and what a browser says of itself.
#pragma once

#include "server/shop_fixture.hpp"

namespace sluice::server {

class OperateTest : public ShopTest {
 protected:
  ServiceOptions with_keys() const {
    auto options = fast();
    options.shop_keys = ShopKeys{{key_of(ann_), key_of(bob_), key_of(till_)}};
    return options;
  }
  /// Snapshots come so fast that nobody waits for them.
  ServiceOptions fast() const {
    auto options = this->options();
    options.snapshots.every = 20ms;
    options.snapshots.database_every = 20ms;
    return options;
  }

  /// As a program of an operator asks.
  Answer as(const MadeShopKey& who, std::string_view method, std::string_view path,
            std::string_view body = {}) const {
    const auto bearer = "Bearer " + who.key;
    return ask(method, path, {{"Authorization", bearer}}, body);
  }
  Answer get(std::string_view path) const { return as(ann_, "GET", path); }
  Answer post(std::string_view path, std::string_view body = {}) const {
    return as(ann_, "POST", path, body);
  }

  /// A snapshot in which the sale has come as far as that.
  JsonValue state_where(const std::function<bool(const JsonValue& sale)>& condition) const {
    JsonValue found;
    EXPECT_TRUE(test::comes_true([&] {
      const auto answer = get("/v1/operate/state");
      if (answer.status != 200) return false;
      found = answer.json();
      const auto& sales = *found.find("sales")->as_array();
      return !sales.empty() && condition(sales.front());
    }));
    return found;
  }

  static ShopKey key_of(const MadeShopKey& made) {
    const auto& line = made.line;
    const auto scopes = line.substr(line.find(' ') + 1);
    const auto hex = line.substr(line.rfind(' ') + 1);
    std::string digest;
    for (std::size_t at = 0; at < hex.size(); at += 2)
      digest += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    return {line.substr(0, line.find(' ')), scopes_of(scopes.substr(0, scopes.find(' '))), digest};
  }

  const MadeShopKey ann_ = make_shop_key("ann", {Scope::operate});
  const MadeShopKey bob_ = make_shop_key("bob", {Scope::operate});
  const MadeShopKey till_ = make_shop_key("till-3", {Scope::orders});
};

/// Members of JSON, one within the other.
inline const JsonValue* member(const JsonValue& value, std::initializer_list<const char*> names) {
  const JsonValue* at = &value;
  for (const auto* name : names)
    if (!(at = at->find(name))) return nullptr;
  return at;
}
inline std::int64_t integer(const JsonValue& value, std::initializer_list<const char*> names) {
  const auto* const found = member(value, names);
  return found && found->as_integer() ? *found->as_integer() : -1;
}

}  // namespace sluice::server
