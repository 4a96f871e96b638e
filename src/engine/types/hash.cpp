#include "engine/types/hash.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

// Redis's defaults hash-max-listpack-entries and -value.
constexpr std::size_t few_fields = 128;
constexpr std::size_t short_text = 64;

}  // namespace

Hash::Hash(const Hash& other) {
  other.for_each([this](const Field& field) { set(field.name, field.value); });
}

Hash::~Hash() = default;

const std::string* Hash::find(std::string_view name) const noexcept {
  if (table_) {
    const Node* node = table_->find(name);
    return node ? &node->value.value : nullptr;
  }
  for (const auto& field : few_)
    if (field.name == name) return &field.value;
  return nullptr;
}

void Hash::expect(std::size_t fields) {
  if (!table_ && few_.empty()) few_.reserve(std::min(fields, few_fields));
}

bool Hash::set(std::string_view name, std::string_view value) {
  if (!table_ && (name.size() > short_text || value.size() > short_text)) become_table();
  if (!table_) {
    for (auto& field : few_)
      if (field.name == name) return field.value.assign(value), false;
    if (few_.size() < few_fields)
      return few_.push_back({std::string{name}, std::string{value}}), true;
    become_table();
  }
  const auto hash = hash_of(name);
  if (Node* node = table_->find(name, hash)) return node->value.value.assign(value), false;
  table_->insert(new Node{.hash = hash, .value = {std::string{name}, std::string{value}}});
  return true;
}

bool Hash::erase(std::string_view name) {
  if (table_) return table_->erase(name);
  return std::erase_if(few_, [&](const Field& field) { return field.name == name; }) > 0;
}

void Hash::become_table() {
  table_ = std::make_unique<ChainedTable<Node>>();
  for (auto& field : few_) {
    const auto hash = hash_of(field.name);
    table_->insert(new Node{.hash = hash, .value = std::move(field)});
  }
  few_ = {};
}

}  // namespace sluice::engine
