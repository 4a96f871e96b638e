// SORT and SORT_RO: the elements of a list, set or sorted set, by themselves or by other keys that
// are named after them.
#include <algorithm>
#include <tuple>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

struct SortOptions {
  std::string_view by;    ///< empty: by the element itself
  bool unsorted = false;  ///< BY without a '*'
  std::vector<std::string_view> get;
  std::int64_t offset = 0;
  std::int64_t count = -1;
  bool descending = false;
  bool alpha = false;
  std::optional<std::string_view> store;
};

SortOptions read_options(Words words, bool may_store) {
  SortOptions out;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto left = words.size() - i - 1;
    if (is_word(words[i], "asc")) {
      out.descending = false;
    } else if (is_word(words[i], "desc")) {
      out.descending = true;
    } else if (is_word(words[i], "alpha")) {
      out.alpha = true;
    } else if (is_word(words[i], "limit") && left >= 2) {
      std::tie(out.offset, out.count) = read_integers(words.subspan(i + 1));
      i += 2;
    } else if (may_store && is_word(words[i], "store") && left >= 1) {
      out.store = words[++i];
    } else if (is_word(words[i], "by") && left >= 1) {
      out.by = words[++i];
      out.unsorted = out.by.find('*') == std::string_view::npos;
    } else if (is_word(words[i], "get") && left >= 1) {
      out.get.push_back(words[++i]);
    } else {
      refuse(syntax_error);
    }
  }
  return out;
}

/// What is sorted. `ordered`: it has an order of its own.
std::vector<std::string> elements_at(Context& context, std::string_view key, bool& ordered) {
  std::vector<std::string> elements;
  const auto add = [&](std::string_view element) {
    context.spend(1);
    elements.emplace_back(element);
  };
  Object* object = find(context, key);
  if (!object) return elements;
  ordered = true;
  if (const auto* list = as<List>(*object)) {
    for (std::size_t i = 0; i < list->size(); ++i) add((*list)[i]);
  } else if (const auto* set = as<Set>(*object)) {
    ordered = false;
    set->for_each(add);
  } else if (const auto* zset = as<SortedSet>(*object)) {
    zset->for_each([&](const Scored& item) { add(item.member); });
  } else {
    refuse(wrong_type);
  }
  return elements;
}

/// What `pattern` means for an element: "#" the element, "key_*" a string, "key_*->field" a field.
std::optional<std::string> looked_up(Context& context, std::string_view pattern,
                                     const std::string& element) {
  context.spend(10);
  if (pattern == "#") return element;
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  const auto arrow = pattern.find("->", star + 1);
  const bool has_field = arrow != std::string_view::npos && arrow + 2 < pattern.size();
  const auto name = has_field ? pattern.substr(0, arrow) : pattern;
  auto key = std::string{name.substr(0, star)} + element;
  key += name.substr(star + 1);
  Object* object = find(context, key);
  if (!object) return std::nullopt;
  if (!has_field) {
    const auto* text = as<std::string>(*object);
    return text ? std::optional{*text} : std::nullopt;
  }
  const auto* hash = as<Hash>(*object);
  const auto* value = hash ? hash->find(pattern.substr(arrow + 2)) : nullptr;
  return value ? std::optional{*value} : std::nullopt;
}

struct Weighted {
  std::string element;
  std::optional<std::string> text;  ///< ALPHA
  double number = 0;
};

void weigh(Context& context, const SortOptions& options, Weighted& item) {
  auto weight = options.by.empty() ? std::optional{item.element}
                                   : looked_up(context, options.by, item.element);
  if (options.alpha) {
    item.text = std::move(weight);
  } else if (weight) {
    const auto number =
        weight->empty() ? std::optional{0.0} : parse_double(*weight);  // as strtod reads it
    if (!number) refuse("ERR One or more scores can't be converted into double");
    item.number = *number;
  }
}

/// A total order: equal weights are decided by the element.
bool comes_first(const Weighted& one, const Weighted& other) {
  if (one.text != other.text) return one.text < other.text;
  if (one.number != other.number) return one.number < other.number;
  return one.element < other.element;
}

/// Sorted, and cut to LIMIT.
std::vector<std::string> sorted(Context& context, const SortOptions& options,
                                std::vector<std::string> elements, bool ordered) {
  std::vector<Weighted> items;
  // What is stored must not depend on the order of a hash table.
  const bool sort = !options.unsorted || (!ordered && (options.store || context.in_script()));
  for (auto& element : elements) {
    Weighted& item = items.emplace_back();
    item.element = std::move(element);
    if (!options.unsorted) weigh(context, options, item);
  }
  if (sort)
    std::ranges::sort(items, [&](const Weighted& one, const Weighted& other) {
      context.spend(1);
      return comes_first(one, other);
    });
  if (options.descending && (sort || ordered)) std::ranges::reverse(items);
  const auto first =
      std::min(items.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.offset, 0)));
  const auto most = options.count < 0 ? items.size() : static_cast<std::size_t>(options.count);
  const auto last = first + std::min(items.size() - first, most);
  std::vector<std::string> result;
  for (auto i = first; i < last; ++i) result.push_back(std::move(items[i].element));
  return result;
}

void store(Context& context, std::string_view key,
           const std::vector<std::optional<std::string>>& values, Reply& reply) {
  auto list = std::make_unique<List>();
  for (const auto& value : values)
    list->push(End::right, value ? std::string_view{*value} : std::string_view{}, nullptr);
  store_result(context, key, std::move(list), true, reply);
}

template <bool may_store>
void sort(Context& context, Words words, Reply& reply) {
  const auto options = read_options(words, may_store);
  bool ordered = false;
  auto elements = elements_at(context, words[1], ordered);
  std::vector<std::optional<std::string>> values;
  for (const auto& element : sorted(context, options, std::move(elements), ordered)) {
    if (options.get.empty()) values.emplace_back(element);
    for (const auto pattern : options.get) values.push_back(looked_up(context, pattern, element));
  }
  if (options.store) return store(context, *options.store, values, reply);
  reply.array(values.size());
  for (const auto& value : values) value ? reply.bulk(*value) : reply.null();
}

}  // namespace

CommandRows sort_commands() noexcept {
  static constexpr CommandRow rows[] = {{"sort", sort<true>}, {"sort_ro", sort<false>}};
  return rows;
}

}  // namespace sluice::engine
