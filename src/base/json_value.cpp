#include "base/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/integer.hpp"

namespace sluice {
namespace {

/// Builds the value from nlohmann's events. A false ends the reading.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const JsonValue::Limits& limits) : limits_(limits) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(JsonValue{value}); }
  bool number_integer(number_integer_t value) override { return add(JsonValue{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    return std::in_range<std::int64_t>(value) ? add(JsonValue{static_cast<std::int64_t>(value)})
                                              : add(JsonValue{static_cast<double>(value)});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(JsonValue{value});
  }
  bool string(string_t& value) override { return add(JsonValue{std::move(value)}); }
  bool binary(binary_t&) override { return fail("binary data is no JSON"); }

  bool start_object(std::size_t) override { return begin(true); }
  bool key(string_t& name) override {
    auto& open = open_.back();
    if (open.members.size() == limits_.members)
      return fail(fmt::format("more than {} members of an object", limits_.members));
    const bool repeated =
        std::ranges::any_of(open.members, [&](const auto& member) { return member.first == name; });
    if (repeated) return fail(fmt::format("'{}' stands twice", name.substr(0, 40)));
    open.name = std::move(name);
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return begin(false); }
  bool end_array() override { return end(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return fail(fmt::format("byte {}: this is no JSON", position));
  }

  JsonValue take_value() { return std::move(value_); }
  std::string take_failure() { return std::move(failure_); }

 private:
  struct Open {
    bool is_object;
    JsonValue::Array items;
    JsonValue::Object members;
    std::string name;  // of the member that comes next
  };

  bool begin(bool is_object) {
    if (open_.size() == limits_.depth)
      return fail(fmt::format("more than {} levels of brackets", limits_.depth));
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }

  bool end() {
    auto closed = std::move(open_.back());
    open_.pop_back();
    return closed.is_object ? add(JsonValue{std::move(closed.members)})
                            : add(JsonValue{std::move(closed.items)});
  }

  bool add(JsonValue value) {
    if (open_.empty())
      value_ = std::move(value);
    else if (open_.back().is_object)
      open_.back().members.emplace_back(std::move(open_.back().name), std::move(value));
    else
      open_.back().items.push_back(std::move(value));
    return true;
  }

  bool fail(std::string why) {
    failure_ = std::move(why);
    return false;
  }

  const JsonValue::Limits limits_;
  std::vector<Open> open_;
  JsonValue value_;
  std::string failure_;
};

}  // namespace

std::expected<JsonValue, std::string> JsonValue::parse(std::string_view text, Limits limits) {
  if (text.size() > limits.bytes)
    return std::unexpected{fmt::format("more than {} bytes", limits.bytes)};
  // nlohmann takes these for the end of the text, and for a mark to pass over.
  if (const auto at = text.find('\0'); at != text.npos || text.starts_with('\xef'))
    return std::unexpected{fmt::format("byte {}: this is no JSON", at == text.npos ? 0 : at)};
  Builder builder{limits};
  if (!nlohmann::json::sax_parse(text, &builder)) return std::unexpected{builder.take_failure()};
  return builder.take_value();
}

const JsonValue* JsonValue::find(std::string_view name) const noexcept {
  const auto* const members = as_object();
  if (!members) return nullptr;
  const auto found = std::ranges::find(*members, name, &Object::value_type::first);
  return found == members->end() ? nullptr : &found->second;
}

std::string behind_file(std::string_view text, const std::string& why) {
  constexpr std::string_view begin = "byte ";
  const auto end = why.find(':');
  const auto place = why.starts_with(begin)
                         ? parse_integer<std::size_t>(
                               std::string_view{why}.substr(begin.size(), end - begin.size()))
                         : std::nullopt;
  if (!place) return ": " + why;
  const auto before = text.substr(0, *place > 0 ? *place - 1 : 0);
  return fmt::format(":{}:{}{}", 1 + std::ranges::count(before, '\n'),
                     before.size() - (before.rfind('\n') + 1) + 1, why.substr(end));
}

}  // namespace sluice
