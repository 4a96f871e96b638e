#include "sale/order_entry.hpp"

#include <charconv>

#include "sluice/id.hpp"

namespace sluice {
namespace {

/// Takes the words of a line off its front.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  std::string_view word() noexcept {
    const auto end = rest_.find(' ');
    if (end == std::string_view::npos) {
      complete_ = false;
      return {};
    }
    const auto word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }

  std::int64_t integer() noexcept {
    const auto text = word();
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0) complete_ = false;
    return number;
  }

  bool complete() const noexcept { return complete_; }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
  bool complete_ = true;
};

const std::string* find_field(const Value::Items& fields, std::string_view name) {
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
    if (fields[i].as_text() == name) return &fields[i + 1].as_text();
  return nullptr;
}

std::optional<Order> order_of_fields(const Value::Items& fields) {
  const auto* const text = find_field(fields, "order");
  const auto* const buyer = find_field(fields, "buyer");
  if (!text || !buyer) return std::nullopt;
  return order_of(*text, *buyer);
}

}  // namespace

std::optional<Order> order_of(std::string_view text, std::string buyer) {
  WordReader reader{text};
  const auto n = reader.integer();
  const auto seconds = reader.integer();
  const auto sequence = reader.integer();
  const auto number = reader.word();
  const auto units = reader.integer();
  const auto issued_us = reader.integer();
  constexpr std::int64_t most_seconds = 0x7fff'ffff;
  constexpr std::int64_t most_sequence = 0xffff'ffff;
  const bool plausible =
      n >= 1 && units >= 1 && seconds <= most_seconds && sequence <= most_sequence;
  if (!reader.complete() || !plausible || number.empty() || buyer.empty() || reader.rest().empty())
    return std::nullopt;
  const IdParts parts{.issued_at = IdWorker::epoch + std::chrono::seconds{seconds},
                      .sequence = static_cast<std::uint32_t>(sequence)};
  return Order{.number = std::string{number},
               .id = IdWorker::compose(parts),
               .units = units,
               .buyer = {std::move(buyer)},
               .n = n,
               .issued_at = WallTime{std::chrono::microseconds{issued_us}},
               .request = {std::string{reader.rest()}}};
}

OrderEntry entry_of(const Value& entry) {
  const auto& parts = entry.as_items();
  if (parts.at(1).is_null())
    return {.id = parts.at(0).as_text(), .order = {}};  // deleted while it was pending
  return {.id = parts.at(0).as_text(), .order = order_of_fields(parts.at(1).as_items())};
}

DeadLetter dead_letter_of(const Value& entry) {
  const auto& parts = entry.as_items();
  const auto& fields = parts.at(1).as_items();
  const auto own = [&](std::string_view name) {
    const auto* const value = find_field(fields, name);
    return value ? *value : std::string{};
  };
  DeadLetter letter{.id = parts.at(0).as_text(),
                    .entry = own("entry"),
                    .reason = own("reason"),
                    .fields = {},
                    .order = {}};
  constexpr std::size_t of_bury = 4;  // reason and entry stand in front
  for (std::size_t i = of_bury; i + 1 < fields.size(); i += 2)
    letter.fields.emplace_back(fields[i].as_text(), fields[i + 1].as_text());
  letter.order = order_of_fields(fields);
  return letter;
}

}  // namespace sluice
