/// Files of secrets, a line each. What is wrong with one is told by its name and line, without the
/// secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct SecretLine {
  int number = 0;  ///< in the file, from 1
  std::string text;
};

/// Lines without the blanks around them; those that are empty or begin with '#' say nothing. `what`
/// names the file in messages: "the file of keys". Throws Error{bad_argument}: it is no file,
/// cannot be read, is larger than 64 KiB, or is not private.
std::vector<SecretLine> read_secret_file(std::string_view what, const std::string& path);

/// A private file is its owner's alone (mode 0600 or less); one of root may also be read by the
/// group of a program that is not root (0640). Throws Error{bad_argument}, also where it is not
/// there.
void need_private_file(std::string_view what, const std::string& path);

/// Throws Error{bad_argument}.
[[noreturn]] void refuse_secret_file(std::string_view what, const std::string& path,
                                     std::string_view why);

}  // namespace sluice
