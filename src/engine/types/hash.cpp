#include "engine/types/hash.hpp"

#include <algorithm>

#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

// Redis's default hash-max-listpack-entries.
constexpr std::size_t few_fields = 128;

}  // namespace

Hash::Hash(const Hash& other) {
  other.for_each([this](const Field& field) { set(field.name, field.value, nullptr); });
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

/// The steps that take changes of a hash back.
struct Hash::Inverse {
  static Hash& of(Undo::Step& step) { return *static_cast<Hash*>(step.target); }

  static void set_few(Undo& undo, Undo::Step& step, Undo::Way) {
    of(step).few_[step.numbers[0]].value = undo.take();
  }
  static void set_many(Undo& undo, Undo::Step& step, Undo::Way) {
    static_cast<Node*>(step.other)->value.value = undo.take();
  }
  static void add_few(Undo&, Undo::Step& step, Undo::Way) { of(step).few_.pop_back(); }
  static void add_many(Undo&, Undo::Step& step, Undo::Way) {
    const auto* node = static_cast<Node*>(step.other);
    Node::destroy(of(step).table_->remove(node->key(), node->hash));
  }
  static void erase_few(Undo& undo, Undo::Step& step, Undo::Way) {
    auto& few = of(step).few_;
    auto value = undo.take();
    const auto place = few.begin() + static_cast<std::ptrdiff_t>(step.numbers[0]);
    few.insert(place, Field{undo.take(), std::move(value)});
  }
  static void erase_many(Undo&, Undo::Step& step, Undo::Way way) {
    auto* node = static_cast<Node*>(step.other);
    way == Undo::Way::back ? of(step).table_->insert(node) : Node::destroy(node);
  }
  static void become_table(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<std::vector<Field>> few{static_cast<std::vector<Field>*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).table_.reset();
    of(step).few_ = std::move(*few);
  }
};

bool Hash::set(std::string_view name, std::string_view value, Undo* undo) {
  if (undo) undo->expect(2);
  if (!table_ && (name.size() > longest_small_text || value.size() > longest_small_text))
    become_table(undo);
  const auto replace = [&](std::string& old) {
    if (undo)
      undo->keep(std::exchange(old, std::string{value}));
    else
      old.assign(value);
  };
  if (!table_) {
    for (std::size_t i = 0; i < few_.size(); ++i) {
      if (few_[i].name != name) continue;
      replace(few_[i].value);
      if (undo) undo->add(Inverse::set_few, this, nullptr, {i});
      return false;
    }
    if (few_.size() < few_fields) {
      few_.push_back({std::string{name}, std::string{value}});
      if (undo) undo->add(Inverse::add_few, this);
      return true;
    }
    become_table(undo);
  }
  const auto hash = hash_of(name);
  if (Node* node = table_->find(name, hash)) {
    replace(node->value.value);
    if (undo) undo->add(Inverse::set_many, this, node);
    return false;
  }
  auto* node = new Node{.hash = hash, .value = {std::string{name}, std::string{value}}};
  table_->insert(node);
  if (undo) undo->add(Inverse::add_many, this, node);
  return true;
}

bool Hash::erase(std::string_view name, Undo* undo) {
  if (undo) undo->expect();
  if (table_) {
    Node* node = table_->remove(name, hash_of(name));
    if (!node) return false;
    if (undo)
      undo->add_keeping(Inverse::erase_many, this, node,
                        sizeof(Node) + node->value.name.size() + node->value.value.size());
    else
      Node::destroy(node);
    return true;
  }
  const auto field = std::ranges::find(few_, name, &Field::name);
  if (field == few_.end()) return false;
  if (undo) {
    undo->keep(std::move(field->name));
    undo->keep(std::move(field->value));
    undo->add(Inverse::erase_few, this, nullptr,
              {static_cast<std::uint64_t>(field - few_.begin())});
  }
  few_.erase(field);
  return true;
}

void Hash::become_table(Undo* undo) {
  if (undo)
    undo->add_keeping(Inverse::become_table, this, new std::vector<Field>(few_),
                      few_.size() * sizeof(Field));
  table_ = std::make_unique<ChainedTable<Node>>();
  for (auto& field : few_) {
    const auto hash = hash_of(field.name);
    table_->insert(new Node{.hash = hash, .value = std::move(field)});
  }
  few_ = {};
}

}  // namespace sluice::engine
