/// All kinds of object, complete: to make, copy or destroy one.
#pragma once

#include "engine/core/keyspace.hpp"
#include "engine/types/hash.hpp"
#include "engine/types/list.hpp"
#include "engine/types/set.hpp"
#include "engine/types/sorted_set.hpp"
#include "engine/types/stream.hpp"

namespace sluice::engine {

Object copy_of(const Object& object);
/// As OBJECT ENCODING answers.
std::string_view encoding_of(const Object& object) noexcept;

}  // namespace sluice::engine
