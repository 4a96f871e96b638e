#include "engine/core/reply.hpp"

#include <algorithm>
#include <utility>

#include "engine/types/text.hpp"

namespace sluice::engine {

Value ValueReply::take() {
  complete_ = false;
  open_.clear();
  return std::exchange(result_, {});
}

void ValueReply::number(double value) {
  if (protocol_ == 3) return add(Value::number(value));
  add(Value::bulk_string(std::string{DoubleText{value}.view()}));
}

void ValueReply::boolean(bool value) {
  add(protocol_ == 3 ? Value::boolean(value) : Value::integer(value ? 1 : 0));
}

void ValueReply::big_number(std::string_view text) {
  add(protocol_ == 3 ? Value::text(Value::Type::big_number, std::string{text})
                     : Value::bulk_string(std::string{text}));
}

void ValueReply::verbatim(std::string_view text) {
  add(Value::text(protocol_ == 3 ? Value::Type::verbatim : Value::Type::bulk_string,
                  std::string{text}));
}

void ValueReply::open(Value::Type type, std::size_t size) {
  if (size == 0) return add(Value::aggregate(type, {}));
  open_.push_back({type, size, {}});
  open_.back().items.reserve(std::min<std::size_t>(size, 1U << 16));
}

void ValueReply::add(Value value) {
  // Each aggregate that is full becomes an element of the one around it.
  while (!open_.empty()) {
    auto& innermost = open_.back();
    innermost.items.push_back(std::move(value));
    if (--innermost.left > 0) return;
    value = Value::aggregate(innermost.type, std::move(innermost.items));
    open_.pop_back();
  }
  result_ = std::move(value);
  complete_ = true;
}

}  // namespace sluice::engine
