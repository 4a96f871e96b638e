#include <algorithm>

#include "lock/watch/key_scan.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {
namespace {

struct SideKey {
  std::string_view prefix;
  LockKind kind;
};

constexpr SideKey side_key_table[] = {
    {"sluice_lock_queue", LockKind::mutex},         {"sluice_lock_waiters", LockKind::mutex},
    {"sluice_lock_tickets", LockKind::fair},        {"sluice_rw_write_line", LockKind::shared},
    {"sluice_rw_read_line", LockKind::shared},      {"sluice_semaphore_holds", LockKind::semaphore},
    {"sluice_semaphore_line", LockKind::semaphore}, {"sluice_permit_people", LockKind::permits},
    {"sluice_permit_line", LockKind::permits},
};

/// The inverse of key_with_prefix(), but for its prefix.
std::string name_in(std::string_view braced) {
  const bool ours = braced.size() > 2 && braced.front() == '{' && braced.back() == '}' &&
                    braced.find('{', 1) == std::string_view::npos;
  return std::string{ours ? braced.substr(1, braced.size() - 2) : braced};
}

LockInfo in_general(LockInfo info) { return info; }

LockInfo in_general(SemaphoreInfo info) {
  LockInfo general;
  for (auto& holder : info.holders)
    general.holders.push_back({.owner = {std::move(holder.id)},
                               .entries = holder.permits,
                               .left = holder.left,
                               .exclusive = false,
                               .data = std::move(holder.data)});
  for (auto& waiter : info.waiters)
    general.waiters.push_back({.owner = {}, .data = std::move(waiter.data)});
  return general;
}

template <class Noun>
Task<LockInfo> read(Store& store, std::string name) {
  Noun noun{store, std::move(name)};
  auto info = co_await noun.info();
  co_return in_general(std::move(info));
}

struct KindReader {
  LockKind kind;
  Task<LockInfo> (*read)(Store&, std::string);
};

constexpr KindReader readers[] = {
    {LockKind::mutex, read<Mutex>},         {LockKind::foreign, read<Mutex>},
    {LockKind::fair, read<FairMutex>},      {LockKind::shared, read<SharedMutex>},
    {LockKind::semaphore, read<Semaphore>}, {LockKind::permits, read<PermitSemaphore>},
};

}  // namespace

std::optional<KnownLock> lock_beside(std::string_view key) {
  for (const auto& row : side_key_table) {
    if (!key.starts_with(row.prefix)) continue;
    const auto rest = key.substr(row.prefix.size());
    if (rest.size() > 1 && rest.front() == ':') return KnownLock{name_in(rest.substr(1)), row.kind};
  }
  return std::nullopt;
}

std::vector<std::string> side_keys_of(std::string_view name) {
  std::vector<std::string> keys;
  for (const auto& row : side_key_table) keys.push_back(key_with_prefix(row.prefix, name));
  return keys;
}

std::optional<LockKind> kind_of_hash(const Value& fields, std::int64_t size) {
  const auto& items = fields.as_items();
  const Value& mode = items.at(1);
  if (!mode.is_null() && (mode.as_text() == "read" || mode.as_text() == "write"))
    return LockKind::shared;
  if (!items.at(0).is_null()) return LockKind::mutex;
  return size == 1 ? std::optional{LockKind::foreign} : std::nullopt;
}

bool is_owner(std::string_view field) {
  constexpr std::size_t uuid = 36;
  const auto among = [](std::string_view text, std::string_view allowed) {
    return text.find_first_not_of(allowed) == std::string_view::npos;
  };
  return field.size() > uuid + 1 && field[uuid] == ':' && field[8] == '-' &&
         among(field.substr(0, uuid), "0123456789abcdefABCDEF-") &&
         among(field.substr(uuid + 1), "0123456789");
}

Task<std::optional<WatchedLock>> read_lock(Store& store, std::string name, LockKind kind) {
  WatchedLock lock{.name = std::move(name), .kind = kind, .info = {}};
  const auto* const reader = std::ranges::find(readers, kind, &KindReader::kind);
  try {
    auto asked = reader->read(store, lock.name);
    lock.info = co_await asked;
  } catch (const Error& failure) {
    // A name that no lock of ours has: another program's, of which no more is known.
    if (failure.errc() == Errc::bad_argument) co_return lock;
    if (failure.errc() != Errc::wrong_type) throw;  // else it is a lock no more
  }
  if (lock.info.holders.empty() && lock.info.waiters.empty()) co_return std::nullopt;
  co_return lock;
}

}  // namespace sluice::lock

namespace sluice {

std::string_view to_string(LockKind kind) noexcept {
  switch (kind) {
    case LockKind::mutex: return "mutex";
    case LockKind::fair: return "fair";
    case LockKind::shared: return "shared";
    case LockKind::semaphore: return "semaphore";
    case LockKind::permits: return "permits";
    case LockKind::foreign: return "foreign";
  }
  return "unknown";
}

}  // namespace sluice
