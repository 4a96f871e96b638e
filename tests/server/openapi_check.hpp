/// Answers, checked against the document that the same service serves.
#pragma once

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "server/curl.hpp"

namespace sluice::server {

class OpenApiCheck {
 public:
  explicit OpenApiCheck(const std::string& document)
      : all_(JsonValue::parse(document, {.bytes = 1 << 20, .depth = 40, .members = 1000}).value()) {
  }

  /// Fails the test where the document does not say of this answer what it is. A path that the
  /// document does not have is not looked at, nor is a method.
  void look(std::string_view method, std::string_view target, const test::Answer& answer) const {
    if (const std::lock_guard lock{mutex_};
        !seen_.insert(fmt::format("{} {} {} {}", method, target, answer.status, answer.body))
             .second)
      return;
    const auto* const operation = operation_of(method, target.substr(0, target.find('?')));
    if (!operation || answer.status == 0) return;
    const auto what = fmt::format("{} {}: {}\n{}", method, target, answer.status, answer.body);
    const auto* const response =
        referred(operation->find("responses")->find(fmt::to_string(answer.status)));
    ASSERT_NE(response, nullptr) << "no such status: " << what;
    const auto at = answer.head.find("Content-Type: ");
    const auto media =
        at == std::string::npos
            ? std::string{}
            : answer.head.substr(at + 14, answer.head.find_first_of(";\r", at) - at - 14);
    const auto* const content = response->find("content");
    if (media.empty()) {
      EXPECT_TRUE(!content || answer.status == 304) << "no media type: " << what;
      return;
    }
    const auto* said = content ? find_media(*content, media) : nullptr;
    ASSERT_NE(said, nullptr) << "no such media type, " << media << ": " << what;
    if (!media.ends_with("json")) return;
    const auto body =
        JsonValue::parse(answer.body, {.bytes = 1 << 20, .depth = 64, .members = 1000});
    ASSERT_TRUE(body) << body.error() << what;
    EXPECT_EQ(wrong_with(*body, referred(said->find("schema"))), "") << what;
    if (media == "application/problem+json")
      EXPECT_NE(response->find("description")->as_text()->find(answer.text("type") + ":"),
                std::string::npos)
          << "no such problem: " << what;
  }

 private:
  static std::vector<std::string_view> segments(std::string_view path) {
    std::vector<std::string_view> all;
    for (std::size_t from = 0; from <= path.size();) {
      const auto end = std::min(path.find('/', from), path.size());
      all.push_back(path.substr(from, end - from));
      from = end + 1;
    }
    return all;
  }

  const JsonValue* operation_of(std::string_view method, std::string_view path) const {
    std::string lower;
    for (const char c : method) lower += static_cast<char>(std::tolower(c));
    const auto sent = segments(path);
    const JsonValue* found = nullptr;
    std::size_t most_literals = 0;
    for (const auto& [pattern, operations] : *all_.find("paths")->as_object()) {
      const auto parts = segments(pattern);
      if (parts.size() != sent.size()) continue;
      std::size_t literals = 1;
      for (std::size_t i = 0; i < parts.size() && literals > 0; ++i)
        if (parts[i] == sent[i])
          ++literals;
        else if (!parts[i].starts_with('{') || sent[i].empty())
          literals = 0;
      if (literals > most_literals) {
        most_literals = literals;
        found = operations.find(lower);
      }
    }
    return found;
  }

  const JsonValue* referred(const JsonValue* value) const {
    const auto* const reference = value ? value->find("$ref") : nullptr;
    if (!reference) return value;
    const auto* at = &all_;
    for (const auto part : segments(std::string_view{*reference->as_text()}.substr(2)))
      at = at->find(part);
    return at;
  }

  static const JsonValue* find_media(const JsonValue& content, std::string_view media) {
    for (const auto& [name, said] : *content.as_object())
      if (name == "*/*" || std::string_view{name}.substr(0, name.find(';')) == media) return &said;
    return nullptr;
  }

  static bool is_of_type(const JsonValue& value, std::string_view type) {
    if (type == "object") return value.as_object();
    if (type == "array") return value.as_array();
    if (type == "string") return value.as_text();
    if (type == "integer") return value.as_integer();
    if (type == "number") return value.as_integer() || value.as_double();
    if (type == "boolean") return value.as_bool();
    return type == "null" && value.is_null();
  }

  /// Of JSON Schema what the document uses. Empty: nothing.
  std::string wrong_with(const JsonValue& value, const JsonValue* schema) const {
    if (!schema) return "it has no schema";
    schema = referred(schema);
    if (const auto* const type = schema->find("type")) {
      bool is_one = false;
      if (type->as_text()) is_one = is_of_type(value, *type->as_text());
      if (type->as_array())
        for (const auto& one : *type->as_array())
          is_one = is_one || is_of_type(value, *one.as_text());
      if (!is_one) return "of another type than " + (type->as_text() ? *type->as_text() : "listed");
    }
    if (const auto* const known = schema->find("enum")) {
      bool is_one = false;
      for (const auto& one : *known->as_array())
        is_one = is_one || (one.as_text() && value.as_text() && *one.as_text() == *value.as_text());
      if (!is_one) return "none of those listed";
    }
    if (const auto* const needed = schema->find("required"))
      for (const auto& name : *needed->as_array())
        if (!value.find(*name.as_text())) return "no " + *name.as_text();
    const auto* const members = schema->find("properties");
    if (value.as_object() && members)
      for (const auto& [name, one] : *value.as_object()) {
        const auto* const said = members->find(name);
        const auto* const more = schema->find("additionalProperties");
        if (!said && !(more && (more->as_object() || (more->as_bool() && *more->as_bool()))))
          return "'" + name + "' is not in the schema";
        if (said)
          if (const auto wrong = wrong_with(one, said); !wrong.empty()) return name + ": " + wrong;
      }
    if (const auto* const items = schema->find("items"); items && value.as_array())
      for (const auto& one : *value.as_array())
        if (const auto wrong = wrong_with(one, items); !wrong.empty()) return "an item: " + wrong;
    return {};
  }

  JsonValue all_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> seen_;
};

}  // namespace sluice::server
