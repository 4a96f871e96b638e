#include "lock/semaphore/members.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/random.hpp"
#include "lock/text.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t request_digits = 24;
constexpr std::size_t permit_digits = 32;

std::string holder_of(std::uint32_t permits, milliseconds lease, milliseconds claim,
                      std::string_view people) {
  return fmt::format("{} {} {} {}", permits, lease.count(), claim.count(), people);
}

}  // namespace

std::string pool_holder(std::uint32_t permits, const Terms& terms, std::string_view people) {
  return holder_of(permits, terms.lease, terms.claim(), people);
}

std::string pool_holder(std::uint32_t permits, milliseconds lease, std::string_view people) {
  return holder_of(permits, lease, lease, people);
}

std::string_view people_of(std::string_view holder) {
  for (int word = 0; word < 3; ++word) take_word(holder);
  return holder;
}

std::uint32_t count_of(std::string_view holder) {
  std::uint32_t count = 0;
  std::from_chars(holder.data(), holder.data() + holder.size(), count);
  return count;
}

std::string new_permit_request() { return random_hex_128().substr(0, request_digits); }

PermitId permit_of(std::string_view request, std::uint32_t index) {
  return *PermitId::parse(fmt::format("{}{:08x}", request, index));
}

std::string member_of(const PermitId& permit) {
  return {reinterpret_cast<const char*>(permit.bytes.data()), permit.bytes.size()};
}

std::vector<std::string> members_of(const Identity& who) {
  std::vector<std::string> members;
  if (who.request.size() == request_digits) {
    for (std::uint32_t i = 1; i <= count_of(who.holder); ++i)
      members.push_back(member_of(permit_of(who.request, i)));
  } else if (who.request.size() == permit_digits) {
    members.push_back(member_of(*PermitId::parse(who.request)));
  } else {
    members.push_back(who.request + ' ' + who.holder);
  }
  return members;
}

}  // namespace sluice::lock
