#include "cache/common.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/callback.hpp"
#include "base/random.hpp"
#include "sluice/log.hpp"
#include "store/key_name.hpp"

namespace sluice::cache {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longest_name = 1024;
constexpr std::size_t largest_storable = std::size_t{512'000'000};

[[noreturn]] void refuse(const std::string& name, std::string_view what) {
  throw Error{Errc::bad_argument, fmt::format("cache guard '{}': {}", shown(name), what)};
}

void check_time(const std::string& name, std::string_view what, milliseconds time,
                milliseconds least) {
  if (time < least || time > longest_time)
    refuse(name, fmt::format("{} is {} ms, it must be {} ms to 10 years", what, time.count(),
                             least.count()));
}

/// Keys are NAME:KEY and others beside it: they lie in one slot of a cluster if braces in the name
/// are a whole tag.
std::string checked_name(std::string name) {
  if (name.empty()) throw Error{Errc::bad_argument, "a cache guard needs a name"};
  if (name.size() > longest_name) refuse(name, "its name is longer than 1 KiB");
  if (!has_whole_tag_or_none(name))
    refuse(name, "braces in its name are a whole tag, as in '{shop}:user'");
  if (is_beside_another(name))
    refuse(name, "so a key beside another name is called; choose another beginning");
  if (name.starts_with(':') && is_whole_tag(name.substr(1)))
    refuse(name, "the keys beside it would be those of the name without the colon");
  return name;
}

CacheGuardOptions checked(const std::string& name, CacheGuardOptions options) {
  check_time(name, "ttl", options.ttl, shortest_ttl);
  check_time(name, "stale", options.stale, milliseconds{0});
  check_time(name, "lease", options.lease, milliseconds{10});
  check_time(name, "longest_load", options.longest_load, milliseconds{0});
  check_time(name, "failure_ttl", options.failure_ttl, milliseconds{0});
  check_time(name, "silence", options.silence, milliseconds{1});
  check_time(name, "wait", options.wait, milliseconds{1});
  check_time(name, "near_ttl", options.near_ttl, milliseconds{1});
  if (options.absent_ttl != milliseconds{0})
    check_time(name, "absent_ttl", options.absent_ttl, milliseconds{10});
  if (!(options.jitter >= 0 && options.jitter <= 0.9)) refuse(name, "jitter must be 0 to 0.9");
  if (!(options.early >= 0 && options.early <= 1000)) refuse(name, "early must be 0 to 1000");
  if (options.max_loads < 1 || options.max_loads > 1024)
    refuse(name, "max_loads must be 1 to 1024");
  if (options.absent_budget < 2 || options.absent_budget > 1'000'000'000)
    refuse(name, "absent_budget must be 2 to 1,000,000,000; absent_ttl 0 caches no absence");
  if (options.durability.replicas > 0)
    check_time(name, "durability.within", options.durability.within, milliseconds{1});
  if (options.largest_value > largest_storable)
    refuse(name, "largest_value must be 512,000,000 at most");
  return options;
}

/// 0: the Store says when a server has been silent for too long.
milliseconds silence_of(const CacheGuardOptions& options) {
  return options.when_down == CacheWhenDown::fail ? milliseconds{0} : options.silence;
}

}  // namespace

Common::Common(Store& of, std::string name, CacheGuardOptions chosen, detail::CacheForm how)
    : store(of),
      options(checked(name, std::move(chosen))),
      form(how),
      names(checked_name(std::move(name))),
      wire(store, names, options.lease, options.durability, silence_of(options)),
      loads(store, options.max_loads, options.max_waiting_loads),
      failures(options.failure_ttl > milliseconds{0}),
      breaker(silence_of(options)) {}

std::optional<Object> Common::decode(const Entry& entry, std::string_view value_key) const {
  if (entry.is_absent) return Object{};
  try {
    return form.decode(entry.payload);
  } catch (...) {
    log(LogLevel::debug, fmt::format("'{}' is loaded anew: its codec says {}", shown(value_key),
                                     text_of(std::current_exception())));
    return std::nullopt;
  }
}

milliseconds Common::spread(milliseconds time) const {
  const auto most = static_cast<double>(time.count()) * options.jitter;
  return time - milliseconds{random_below(static_cast<std::uint64_t>(most) + 1)};
}

void Common::check_open() const {
  if (closed) throw Error{Errc::closed, fmt::format("cache guard '{}' has ended", names.name())};
}

}  // namespace sluice::cache
