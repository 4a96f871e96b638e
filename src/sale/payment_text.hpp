/// What the webhooks of all providers have: a payment's members in JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/json_value.hpp"

namespace sluice::sale {

// They say what is wrong; empty: nothing, and it is read.
std::string read_text(const JsonValue& object, std::string_view name, std::size_t longest,
                      std::string& into);
std::string read_amount(const JsonValue& object, std::string_view name, std::int64_t& into);

/// What another program answered, for people: its first 200 bytes, as far as they are text, behind
/// ": "; empty: it said nothing.
std::string words_of(std::string_view body);

/// Throws Error{bad_argument} for a name of a provider that is none.
void check_provider_name(const std::string& name);

}  // namespace sluice::sale
