/// All kinds of object, complete: to make, copy or destroy one.
#pragma once

#include "engine/hash.hpp"
#include "engine/keyspace.hpp"
#include "engine/list.hpp"
#include "engine/set.hpp"
#include "engine/sorted_set.hpp"
#include "engine/stream.hpp"

namespace sluice::engine {

Object copy_of(const Object& object);
/// As OBJECT ENCODING answers.
std::string_view encoding_of(const Object& object) noexcept;

}  // namespace sluice::engine
