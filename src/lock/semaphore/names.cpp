#include "lock/semaphore/names.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "lock/hold/owner.hpp"
#include "lock/text.hpp"
#include "store/key_name.hpp"

namespace sluice {
namespace lock {

namespace {

constexpr std::size_t request_digits = 24;
constexpr std::size_t permit_digits = 32;

/// `prefix`: what our keys of that kind of semaphore begin with.
PermitNames names_of(std::string name, const std::string& prefix) {
  const std::string free = checked_name("a semaphore", std::move(name));
  return {.free = free,
          .holds = key_with_prefix(prefix + "_holds", free),
          .queue = key_with_prefix(prefix + "_line", free),
          .people = key_with_prefix(prefix + "_people", free),
          .turns = key_with_prefix(prefix + "_turns", free),
          .channel = key_with_prefix("redisson_sc", free),
          .done = key_with_prefix(prefix + "_done", free)};
}

}  // namespace

PermitNames PermitNames::counted(std::string name) {
  return names_of(std::move(name), "sluice_semaphore");
}

PermitNames PermitNames::identified(std::string name) {
  PermitNames names = names_of(std::move(name), "sluice_permit");
  names.holds = key_with_suffix(names.free, "timeout");
  return names;
}

std::string PermitNames::answer(std::string_view request) const {
  return done + ':' + std::string{request};
}

std::string permit_holder(std::uint32_t permits, const Terms& terms, std::string_view people) {
  return fmt::format("{} {} {} {}", permits, terms.lease.count(), terms.claim().count(), people);
}

std::string_view people_of(std::string_view holder) {
  for (int word = 0; word < 3; ++word) take_word(holder);
  return holder;
}

std::uint32_t count_of(std::string_view holder) { return leading_number<std::uint32_t>(holder); }

std::string new_permit_request() { return random_hex_128().substr(0, request_digits); }

std::string new_request_like(std::string_view request) {
  return request.size() == request_digits ? new_permit_request() : new_request_id();
}

std::string_view request_of_hold(std::string_view request) {
  return request.size() == permit_digits ? request.substr(0, request_digits) : request;
}

PermitId permit_of(std::string_view request, std::uint32_t index) {
  return *PermitId::parse(fmt::format("{}{:08x}", request, index));
}

std::string member_of(const PermitId& permit) {
  return {reinterpret_cast<const char*>(permit.bytes.data()), permit.bytes.size()};
}

std::vector<std::string> members_of(const Identity& who) {
  std::vector<std::string> members;
  if (who.request().size() == request_digits) {
    for (std::uint32_t i = 1; i <= count_of(who.holder()); ++i)
      members.push_back(member_of(permit_of(who.request(), i)));
  } else if (who.request().size() == permit_digits) {
    members.push_back(member_of(*PermitId::parse(who.request())));
  } else {
    members.push_back(fmt::format("{} {}", who.request(), who.holder()));
  }
  return members;
}

}  // namespace lock

std::string PermitId::text() const {
  return hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<PermitId> PermitId::parse(std::string_view text) {
  PermitId id;
  if (text.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const auto byte = parse_integer<std::uint8_t>(text.substr(2 * i, 2), 16);
    if (!byte) return std::nullopt;
    id.bytes[i] = *byte;
  }
  return id;
}

}  // namespace sluice
