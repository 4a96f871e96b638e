#include "redis/odd_replies.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::test {
namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string bulk(std::string_view text, char type = '$') {
  return fmt::format("{}{}\r\n{}\r\n", type, text.size(), text);
}

std::string random_text(Dice& dice) {
  static constexpr std::string_view texts[] = {"",           "OK",       "message", "subscribe",
                                               "\r\n:1\r\n", "txt",      "QUEUED",  "a\0b",
                                               "-ERR no",    "+PONG\r\n"};
  if (dice.chance(90)) return std::string{texts[dice.below(std::size(texts))]};
  return std::string(dice.below(100'000), 'x');  // beyond what one read takes
}

std::string leaf(Dice& dice) {
  static constexpr const char* leaves[] = {"_\r\n",
                                           "$-1\r\n",
                                           "*-1\r\n",
                                           "#t\r\n",
                                           "#f\r\n",
                                           ":0\r\n",
                                           ":-9223372036854775808\r\n",
                                           ",1.5\r\n",
                                           ",inf\r\n",
                                           ",-inf\r\n",
                                           ",nan\r\n",
                                           ",1e308\r\n",
                                           ":+7\r\n",
                                           "+\r\n",
                                           "+OK\r\n",
                                           "+QUEUED\r\n",
                                           "*0\r\n",
                                           "%0\r\n",
                                           "~0\r\n",
                                           "$0\r\n\r\n",
                                           "(3492890328409238509324850943850943825024385\r\n"};
  switch (dice.below(6)) {
    case 0: return bulk(random_text(dice));
    case 1: return bulk("txt:" + random_text(dice), '=');
    case 2: return fmt::format(":{}\r\n", static_cast<std::int64_t>(dice.next()));
    default: return dice.one_of(leaves);
  }
}

std::string random_error(Dice& dice) {
  static constexpr const char* errors[] = {"ERR no",
                                           "WRONGTYPE no",
                                           "MOVED 3999 127.0.0.1:6381",
                                           "ASK 3999 127.0.0.1:6381",
                                           "LOADING Redis is loading the dataset in memory",
                                           "BUSY Redis is busy running a script",
                                           "READONLY You can't write against a read only replica.",
                                           "NOSCRIPT No matching script.",
                                           "OOM command not allowed",
                                           "NOPERM no",
                                           "NOAUTH Authentication required.",
                                           "MISCONF no",
                                           "CLUSTERDOWN no",
                                           "TRYAGAIN no",
                                           "",
                                           " "};
  const std::string text = dice.one_of(errors);
  if (dice.chance(10)) return "-ERR " + std::string(70'000 + dice.below(100'000), 'e') + "\r\n";
  return dice.chance(80) ? "-" + text + "\r\n" : bulk(text, '!');
}

std::string nest(Dice& dice) {
  static constexpr std::size_t depths[] = {129, 1000, 9'999, 10'000, 10'001, 30'000};
  static constexpr const char* opened[] = {"*1\r\n", "~1\r\n", "*2\r\n:1\r\n", "%1\r\n+k\r\n",
                                           "*2\r\n*0\r\n"};
  return repeated(dice.one_of(opened), dice.one_of(depths)) + leaf(dice);
}

/// More than one reply may have, or what only begins.
std::string unfinished(Dice& dice) {
  static constexpr const char* begun[] = {"$536870913\r\nabc",
                                          "$99999999999\r\n",
                                          "$99999999999999999999\r\n",
                                          "*2147483647\r\n:1\r\n",
                                          "*2147483648\r\n",
                                          "%1073741823\r\n+a\r\n",
                                          "*9223372036854775807\r\n",
                                          "$-2\r\n",
                                          "*-2\r\n",
                                          "%-1\r\n",
                                          "$?\r\n;4\r\nabcd\r\n;0\r\n",
                                          "*?\r\n:1\r\n.\r\n",
                                          "%?\r\n+a\r\n:1\r\n.\r\n",
                                          "|1\r\n+a\r\n",
                                          "=3\r\nabc\r\n",
                                          "#x\r\n",
                                          "_x\r\n",
                                          ",1,5\r\n",
                                          ":1 \r\n",
                                          "(\n",
                                          "+OK\n",
                                          "\r\n",
                                          "HTTP/1.1 400 Bad Request\r\n",
                                          "\x16\x03\x01"};
  if (dice.chance(20)) return repeated("*2147483647\r\n", dice.below(20'000));
  if (dice.chance(20)) return ":" + std::string(70'000, '1');
  if (dice.chance(50)) return dice.one_of(begun);
  std::string whole = dice.chance(80) ? random_reply(dice) : nest(dice);
  return whole.substr(0, dice.below(whole.size()));
}

}  // namespace

std::string random_reply(Dice& dice, int depth) {
  if (dice.chance(5)) return "|1\r\n" + leaf(dice) + leaf(dice) + random_reply(dice, depth);
  if (depth > 5 || dice.chance(60)) {
    if (depth > 0 && dice.chance(10)) return random_error(dice);
    return leaf(dice);
  }
  static constexpr char types[] = {'*', '~', '%'};
  const char type = dice.one_of(types);
  const auto size = dice.below(5);
  std::string reply = fmt::format("{}{}\r\n", type, size);
  for (std::uint64_t i = 0; i < size * (type == '%' ? 2 : 1); ++i)
    reply += random_reply(dice, depth + 1);
  return reply;
}

OddReply odd_reply(Dice& dice) {
  using Then = OddReply::Then;
  const auto kind = dice.below(100);
  if (kind < 30) return {.bytes = random_reply(dice)};
  if (kind < 50) return {.bytes = random_error(dice), .is_error = true};
  if (kind < 65) return {.bytes = nest(dice)};
  if (kind < 70) return {.bytes = "+" + std::string(70'000, 's') + "\r\n"};
  if (kind < 75) return {.bytes = {}, .never_ends = true, .then = Then::close};
  if (kind < 76) return {.bytes = {}, .never_ends = true, .then = Then::wait};
  OddReply reply{.bytes = unfinished(dice), .never_ends = true};
  if (dice.chance(50)) {
    reply.bytes += "\x01nonsense\r\n";  // a simple string ends with it
    reply.never_ends = false;
  }
  reply.then = dice.chance(95) ? Then::close : Then::wait;
  return reply;
}

std::string mutated_reply(Dice& dice) {
  static constexpr std::string_view bytes = "$*%~>|+-:_#,(=!;.?0129\r\nx\x80";
  std::string reply = dice.chance(20) ? random_error(dice) : random_reply(dice);
  reply.resize(std::min<std::size_t>(reply.size(), 1000));
  if (dice.chance(20)) {
    const std::string more = random_reply(dice);
    return reply + more.substr(0, dice.below(std::min<std::size_t>(more.size(), 1000)));
  }
  const auto changes = dice.below(3);
  for (std::uint64_t i = 0; i <= changes && !reply.empty(); ++i) {
    const auto at = dice.below(reply.size());
    const char byte = bytes[dice.below(bytes.size())];
    switch (dice.below(3)) {
      case 0: reply[at] = byte; break;
      case 1: reply.erase(at, 1 + dice.below(3)); break;
      default: reply.insert(at, 1, byte); break;
    }
  }
  return reply;
}

std::string random_push(Dice& dice) {
  static constexpr const char* pushes[] = {">0\r\n",
                                           ">1\r\n+message\r\n",
                                           ">3\r\n+message\r\n:1\r\n:2\r\n",
                                           ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n:1\r\n",
                                           ">3\r\n+message\r\n+c\r\n+m\r\n",
                                           ">3\r\n+subscribe\r\n+c\r\n:1\r\n",
                                           ">2\r\n+subscribe\r\n:1\r\n",
                                           ">2\r\n+invalidate\r\n_\r\n",
                                           ">1\r\n:1\r\n",
                                           ">1\r\n_\r\n",
                                           "|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n"};
  if (dice.chance(5)) return ">1\r\n" + repeated("*1\r\n", 20'000) + ":1\r\n";
  return dice.one_of(pushes);
}

}  // namespace sluice::test
