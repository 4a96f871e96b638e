/// Everything a store holds, as text that can be compared, whatever kind of store it is.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sluice/store.hpp"
#include "sluice/value.hpp"

namespace sluice::engine::test {

/// Asks one command; an error is a Value.
using Ask = std::function<Value(std::span<const std::string_view> words)>;
using Dump = std::map<std::string, std::string>;

/// Each key with its type, time of expiry and content. Unordered content is sorted.
Dump dump(const Ask& ask);
Dump dump(Store& store);

/// Empty: they are equal. Else a line for each key that differs.
std::string difference(const Dump& found, const Dump& expected);

}  // namespace sluice::engine::test
