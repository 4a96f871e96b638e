/// What a key can hold.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "engine/types/hash.hpp"
#include "engine/types/list.hpp"
#include "engine/types/set.hpp"
#include "engine/types/sorted_set.hpp"
#include "engine/types/stream.hpp"

namespace sluice::engine {

using Object =
    std::variant<std::string, std::unique_ptr<Hash>, std::unique_ptr<List>, std::unique_ptr<Set>,
                 std::unique_ptr<SortedSet>, std::unique_ptr<Stream>>;

/// As TYPE answers: "string", "hash", "list", "set", "zset", "stream".
std::string_view type_name(const Object& object) noexcept;
/// As OBJECT ENCODING answers.
std::string_view encoding_of(const Object& object) noexcept;
Object copy_of(const Object& object);

/// The value, if it is of type T; null: it is of another.
template <class T>
T* as(Object& object) noexcept {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::get_if<std::string>(&object);
  } else {
    auto* held = std::get_if<std::unique_ptr<T>>(&object);
    return held ? held->get() : nullptr;
  }
}

}  // namespace sluice::engine
