#include "base/instant.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"

namespace sluice {
namespace {

/// Takes the parts of an instant off its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// So many digits; one of another kind fails.
  int digits(std::size_t count) {
    const auto text = rest_.substr(0, count);
    if (text.size() < count || !is_digits(text)) {
      good_ = false;
      return 0;
    }
    rest_.remove_prefix(count);
    return *parse_integer<int>(text);
  }
  bool skip(char c) {
    const bool there = rest_.starts_with(c);
    if (there) rest_.remove_prefix(1);
    return there;
  }
  void need(char c) { good_ = skip(c) && good_; }

  /// 1 to 6 digits, as microseconds.
  int fraction() {
    int us = 0;
    int unit = 1'000'000;
    while (unit > 1 && !rest_.empty() && is_digits(rest_.substr(0, 1)))
      us += digits(1) * (unit /= 10);
    good_ = good_ && unit < 1'000'000;
    return us;
  }
  bool good() const noexcept { return good_; }
  bool ended() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::optional<WallTime> parse_instant(std::string_view text) {
  using namespace std::chrono;
  Reader reader{text};
  const year y{reader.digits(4)};
  reader.need('-');
  const month m{static_cast<unsigned>(reader.digits(2))};
  reader.need('-');
  const day d{static_cast<unsigned>(reader.digits(2))};
  if (!reader.skip('T')) reader.need(' ');
  const int hour = reader.digits(2);
  reader.need(':');
  const int minute = reader.digits(2);
  const int second = reader.skip(':') ? reader.digits(2) : 0;
  const int us = reader.skip('.') ? reader.fraction() : 0;
  minutes offset{0};
  if (!reader.skip('Z')) {
    const int sign = reader.skip('-') ? -1 : 1;
    if (sign == 1) reader.need('+');
    const int hours_off = reader.digits(2);
    reader.skip(':');
    const int minutes_off = reader.digits(2);
    if (hours_off > 14 || minutes_off > 59) return std::nullopt;
    offset = sign * minutes{hours_off * 60 + minutes_off};
  }
  const year_month_day date{y, m, d};
  if (!reader.good() || !reader.ended() || !date.ok() || hour > 23 || minute > 59 || second > 59)
    return std::nullopt;
  return sys_days{date} + hours{hour} + minutes{minute} + seconds{second} + microseconds{us} -
         offset;
}

std::string to_text(WallTime instant) {
  using namespace std::chrono;
  const auto midnight = floor<days>(instant);
  const year_month_day date{midnight};
  const hh_mm_ss time{instant - midnight};
  auto text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                          static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                          time.hours().count(), time.minutes().count(), time.seconds().count());
  if (time.subseconds().count() != 0) text += fmt::format(".{:06}", time.subseconds().count());
  return text + "Z";
}

}  // namespace sluice
