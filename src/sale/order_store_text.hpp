/// Ids of any bytes as text that every database takes: valid UTF-8 without NUL, one to one.
#pragma once

#include <string>
#include <string_view>

namespace sluice::sale {

/// Valid UTF-8 stays as it is, but for control characters and '%', which become %XX. In text that
/// is not UTF-8 every byte above 0x7e becomes %XX too.
std::string to_column(std::string_view bytes);
/// The other way round. Throws Error{corrupt} for a '%' that to_column() does not write.
std::string from_column(std::string_view text);

}  // namespace sluice::sale
