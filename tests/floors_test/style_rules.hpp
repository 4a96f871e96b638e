/// The rules of CONTRIBUTING.md that can be read off the text: lines, functions, names, headers.
#pragma once

#include "floors_test/house_rules.hpp"

namespace sluice::floors {

/// No line of code, script or table has more than 100 columns.
Findings check_lines(const SourceTree& tree);
/// No function of src/ or include/ has more than 60 lines, its signature counted.
Findings check_functions(const SourceTree& tree);
/// A class of src/ or include/ shares its name with none of its own namespace, of one around it, or
/// of one in it.
Findings check_class_names(const SourceTree& tree);
/// No file of src/ or include/ calls fmt::format_to(), which compiles fmt's formatter into it: text
/// is appended to.
Findings check_formatting(const SourceTree& tree);
/// What a file uses of the standard library, it or a header of ours that it includes gets from the
/// header that has it: precompiled headers hide when none does.
Findings check_standard_headers(const SourceTree& tree);

}  // namespace sluice::floors
