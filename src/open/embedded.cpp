#include "open/embedded.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/embedded_store.hpp"

namespace sluice {
namespace {

engine::Fsync fsync_mode(std::string_view text) {
  static constexpr std::pair<std::string_view, engine::Fsync> modes[] = {
      {"always", engine::Fsync::always},
      {"everysec", engine::Fsync::everysec},
      {"never", engine::Fsync::never}};
  for (const auto& [name, mode] : modes)
    if (name == text) return mode;
  refuse(fmt::format("fsync={} is not known: there are always, everysec, never", text));
}

}  // namespace

std::unique_ptr<Store> open_embedded(const Url& url, const OpenOptions& options) {
  static constexpr std::string_view known[] = {"fsync"};
  refuse_unknown_settings(url, known);
  if (names_a_host(url) || !url.user.empty() || !url.password.empty())
    refuse("embedded: takes a folder and no host: embedded:/var/lib/app");
  if (!url.path.empty() && !url.path.starts_with('/'))
    refuse(
        fmt::format("embedded:{} names no folder: it begins with a slash, embedded:/var/lib/app; "
                    "without a folder it is memory, embedded:",
                    url.path));
  if (url.path.find_first_not_of('/') == std::string::npos && !url.path.empty())
    refuse(
        "embedded:/ is the root of the file system, where no data belong: embedded:/var/lib/app");
  engine::EmbeddedOptions embedded{
      .path = url.path, .clock = options.clock, .executor = options.executor};
  if (const auto mode = url.query.find("fsync"); mode != url.query.end())
    embedded.fsync = fsync_mode(mode->second);
  return engine::open_embedded(std::move(embedded));
}

}  // namespace sluice
