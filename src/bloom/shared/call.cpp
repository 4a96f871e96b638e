#include "bloom/shared/call.hpp"

#include <fmt/format.h>

#include "store/reply_error.hpp"

namespace sluice::bloom {
namespace {

Words words(const std::vector<std::string_view>& views) { return {views.data(), views.size()}; }

}  // namespace

Call& Call::key(std::string name) {
  keys_.push_back(std::move(name));
  return *this;
}

Call& Call::arg(std::string_view text) {
  text_ += text;
  ends_.push_back(text_.size());
  return *this;
}

Call& Call::arg(std::uint64_t number) {
  const fmt::format_int text{number};
  return arg(std::string_view{text.data(), text.size()});
}

Call& Call::known(const Definition& definition) {
  return arg(definition.size)
      .arg(definition.hashes)
      .arg(definition.chain)
      .arg(definition.id)
      .arg(definition.next);
}

std::vector<std::string_view> Call::keys() const { return {keys_.begin(), keys_.end()}; }

std::vector<std::string_view> Call::args() const {
  std::vector<std::string_view> views;
  views.reserve(ends_.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    views.push_back(std::string_view{text_}.substr(begin, end - begin));
    begin = end;
  }
  return views;
}

Task<Value> Call::run(Store& store, bool repeatable) const {
  const auto all_keys = keys();
  const auto all_args = args();
  CallOptions options;
  options.repeatable = repeatable;
  return store.run(script_, words(all_keys), words(all_args), options);
}

void Call::add_to(Batch& batch) const {
  const auto all_keys = keys();
  const auto all_args = args();
  batch.add(script_, words(all_keys), words(all_args));
}

void Call::check(const Value& answer) const {
  if (!answer.is_error()) return;
  const auto all_keys = keys();
  throw error_of_script(answer.as_text(), script_, words(all_keys));
}

}  // namespace sluice::bloom
