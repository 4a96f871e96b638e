/// The rules of comments: what a tool that fills paragraphs breaks, and no compiler reads.
#pragma once

#include "floors_test/house_rules.hpp"

namespace sluice::floors {

/// No few words stand on a line because the line before was full, while the paragraph goes on
/// below, further in: a tool has filled it line by line.
Findings check_paragraphs(const SourceTree& tree);
/// An example in a public header has a statement on each line; one in braces may stand on one line.
Findings check_examples(const SourceTree& tree);

}  // namespace sluice::floors
