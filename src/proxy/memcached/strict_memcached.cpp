// Compat::strict: the lines that twemproxy 0.5.0 takes, as a running one showed.
#include <algorithm>

#include "proxy/memcached/commands.hpp"

namespace sluice::proxy {
namespace {

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Of incr, decr and touch: it may have a sign, and nobody looks at what follows a sign.
bool is_twemproxys_number(std::string_view text) noexcept {
  return text == "-" || is_digits(text.starts_with('-') ? text.substr(1) : text);
}

bool is_short(std::string_view key) noexcept { return key.size() <= longest_memcached_key; }

/// As many words as the command needs, and perhaps "noreply".
bool ends_right(const MemcachedCommand& command, Words line) noexcept {
  return line.size() == command.least ||
         (line.size() == command.least + 1U && line.back() == "noreply");
}

}  // namespace

bool twemproxy_takes(const MemcachedCommand& command, Words line, bool has_data) noexcept {
  if (line.size() < command.least) return false;
  switch (command.kind) {
    case MemcachedKind::get: return std::ranges::all_of(line.subspan(1), is_short);
    case MemcachedKind::store:
      return has_data && is_short(line[1]) && is_digits(line[2]) && is_digits(line[3]) &&
             ends_right(command, line);
    case MemcachedKind::change:
      return is_short(line[1]) && ends_right(command, line) &&
             (command.least == 2 || is_twemproxys_number(line[2]));
    case MemcachedKind::version:
    case MemcachedKind::quit: return line.size() == 1;
    default: return false;
  }
}

}  // namespace sluice::proxy
