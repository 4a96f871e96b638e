/// `sluice proxy`: the proxy is a program of its own, sluice-proxy.
#pragma once

#include <span>

namespace sluice::cli {

/// Becomes the program sluice-proxy, with all words of this process: `sluice proxy WORDS...`, or of
/// a program called nutcracker. It is looked for beside this program, in ../libexec/sluice, and on
/// PATH. Returns only when it cannot be run: the exit code, after a line on stderr that says what
/// to do. REQUIRES: `words` begins with the program's name and ends before a null pointer, as argv
/// does.
int exec_proxy(std::span<char* const> words);

/// Whether the program that is called so stands in for nutcracker: a link of that name.
bool is_nutcracker(const char* program) noexcept;

}  // namespace sluice::cli
