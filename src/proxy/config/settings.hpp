/// The table of all settings (settings.def) as rows, and over the members that they name.
#pragma once

#include <span>
#include <type_traits>

#include "proxy/config/kinds.hpp"

namespace sluice::proxy {

#define SETTING(member, Kind, written, lowest, highest, whose, does)       \
  SettingRow{#member,       kinds::Kind::name,   written, lowest, highest, \
             Origin::whose, kinds::Kind::secret, does},
inline constexpr SettingRow pool_rows[] = {
#define POOL
#include "proxy/config/settings.def"
#undef POOL
};
inline constexpr SettingRow process_rows[] = {
#define PROCESS
#include "proxy/config/settings.def"
#undef PROCESS
};
inline constexpr SettingRow tls_rows[] = {
#define TLS
#include "proxy/config/settings.def"
#undef TLS
};
inline constexpr SettingRow user_rows[] = {
#define USER
#include "proxy/config/settings.def"
#undef USER
};
#undef SETTING

inline std::span<const SettingRow> rows_of(const PoolSettings&) { return pool_rows; }
inline std::span<const SettingRow> rows_of(const ProcessSettings&) { return process_rows; }
inline std::span<const SettingRow> rows_of(const TlsSettings&) { return tls_rows; }
inline std::span<const SettingRow> rows_of(const UserSettings&) { return user_rows; }

/// Calls visit(row, kind, member...) for each setting, in the order of the table; with several
/// targets (of one type) it gets the member of each.
#define SETTING(member, Kind, written, lowest, highest, whose, does) \
  visit(*row++, kinds::Kind{}, targets.member...);
template <class Visit, class... Targets>
  requires(sizeof...(Targets) > 0)
&&(std::is_same_v<std::remove_const_t<Targets>, PoolSettings>&&...) void visit_settings(
    Visit&& visit, Targets&... targets) {
  const SettingRow* row = pool_rows;
#define POOL
#include "proxy/config/settings.def"
#undef POOL
}
template <class Visit, class... Targets>
  requires(sizeof...(Targets) > 0)
&&(std::is_same_v<std::remove_const_t<Targets>, ProcessSettings>&&...) void visit_settings(
    Visit&& visit, Targets&... targets) {
  const SettingRow* row = process_rows;
#define PROCESS
#include "proxy/config/settings.def"
#undef PROCESS
}
template <class Visit, class... Targets>
  requires(sizeof...(Targets) > 0)
&&(std::is_same_v<std::remove_const_t<Targets>, TlsSettings>&&...) void visit_settings(
    Visit&& visit, Targets&... targets) {
  const SettingRow* row = tls_rows;
#define TLS
#include "proxy/config/settings.def"
#undef TLS
}
template <class Visit, class... Targets>
  requires(sizeof...(Targets) > 0)
&&(std::is_same_v<std::remove_const_t<Targets>, UserSettings>&&...) void visit_settings(
    Visit&& visit, Targets&... targets) {
  const SettingRow* row = user_rows;
#define USER
#include "proxy/config/settings.def"
#undef USER
}
#undef SETTING

template <class Target, class Visit>
void for_each_setting(Target& target, Visit&& visit) {
  visit_settings(visit, target);
}
template <class Target, class Visit>
void for_each_setting(Target& one, Target& other, Visit&& visit) {
  visit_settings(visit, one, other);
}

}  // namespace sluice::proxy
