/// A question to a filter: a script with its keys and arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bloom/shared/definition.hpp"

namespace sluice::bloom {

class Call {
 public:
  explicit Call(const Script& script) : script_(script) {}

  Call& key(std::string name);
  Call& arg(std::string_view text);
  Call& arg(std::uint64_t number);
  /// The five arguments that each script compares.
  Call& known(const Definition& definition);

  Task<Value> run(Store& store, bool repeatable) const;
  void add_to(Batch& batch) const;
  /// Throws the Error that an answer of it stands for.
  void check(const Value& answer) const;

 private:
  std::vector<std::string_view> keys() const;
  std::vector<std::string_view> args() const;

  const Script& script_;
  std::vector<std::string> keys_;
  std::string text_;  // of all arguments, one behind the other
  std::vector<std::size_t> ends_;
};

}  // namespace sluice::bloom
