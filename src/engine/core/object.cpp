#include "engine/core/object.hpp"

#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

std::string_view encoding(const std::string& text) noexcept {
  constexpr std::size_t embedded_at_most = 44;  // bytes that Redis allocates with the object
  if (parse_integer(text)) return "int";
  return text.size() <= embedded_at_most ? "embstr" : "raw";
}
template <class T>
std::string_view encoding(const std::unique_ptr<T>& value) noexcept {
  return value->encoding();
}
std::string_view encoding(const std::unique_ptr<Stream>&) noexcept { return "stream"; }

std::string copy(const std::string& text) { return text; }
template <class T>
std::unique_ptr<T> copy(const std::unique_ptr<T>& value) {
  return std::make_unique<T>(*value);
}

}  // namespace

std::string_view type_name(const Object& object) noexcept {
  static constexpr std::string_view names[] = {"string", "hash", "list", "set", "zset", "stream"};
  return names[object.index()];
}

Object copy_of(const Object& object) {
  return std::visit([](const auto& value) { return Object{copy(value)}; }, object);
}

std::string_view encoding_of(const Object& object) noexcept {
  return std::visit([](const auto& value) { return encoding(value); }, object);
}

}  // namespace sluice::engine
