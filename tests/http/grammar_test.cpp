// Each byte at each place of each production of HTTP's grammar: it is taken if and only if RFC 9112
// (and RFC 3986 for targets) allows it there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/reader.hpp"

namespace sluice::http {
namespace {

using Byte = unsigned char;
using Allowed = std::function<bool(Byte)>;

bool is_one_of(std::string_view bytes, Byte byte) {
  return bytes.find(static_cast<char>(byte)) != std::string_view::npos;
}
bool is_digit(Byte byte) { return byte >= '0' && byte <= '9'; }
bool is_hex(Byte byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
bool is_letter(Byte byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }
bool is_blank(Byte byte) { return byte == ' ' || byte == '\t'; }
bool is_token(Byte byte) {
  return is_digit(byte) || is_letter(byte) || is_one_of("!#$%&'*+-.^_`|~", byte);
}
bool is_text(Byte byte) { return is_blank(byte) || (byte > ' ' && byte != 0x7f); }
bool is_quoted(Byte byte) { return is_text(byte) && byte != '"'; }
/// As RFC 3986 has it, and what browsers send unescaped: see decision 0045.
bool is_target(Byte byte) {
  return is_digit(byte) || is_letter(byte) || is_one_of("-._~!$&'()*+,;=:@/?[]\\^`{|}", byte);
}
bool is_nothing(Byte) { return false; }
Allowed exactly(std::string_view bytes) {
  return [bytes](Byte byte) { return is_one_of(bytes, byte); };
}
Allowed either(Allowed one, std::string_view bytes) {
  return [=](Byte byte) { return one(byte) || is_one_of(bytes, byte); };
}

/// A byte is put between the two.
struct Place {
  std::string_view name;
  std::string before;
  std::string after;
  Allowed allowed;
  Allowed changes_the_rest = is_nothing;  ///< not asked
};

const std::string host = "Host: t\r\n";
const std::string chunked = "POST /p HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string data = "\r\nabc\r\n0\r\n\r\n";

Place in_head(std::string_view name, const std::string& before, const std::string& after,
              Allowed allowed) {
  return {name, before, after + "\r\n", std::move(allowed)};
}
/// In the line of a chunk.
Place in_chunk(std::string_view name, const std::string& before, const std::string& after,
               Allowed allowed, Allowed changes = is_nothing) {
  return {name, chunked + before, after + data, std::move(allowed), std::move(changes)};
}
Place in_trailer(std::string_view name, const std::string& before, const std::string& after,
                 Allowed allowed) {
  return {name, chunked + "3\r\nabc\r\n0\r\n" + before, after + "\r\n", std::move(allowed)};
}

std::vector<Place> places_of_heads() {
  const std::string rest = " HTTP/1.1\r\n" + host;
  const std::string line = "GET /p HTTP/1.1\r\n" + host;
  return {
      in_head("begin of method", "", "GET /p" + rest, is_token),
      in_head("method", "G", "ET /p" + rest, is_token),
      in_head("end of method", "GET", " /p" + rest, is_token),
      in_head("blank behind method", "GET", "/p" + rest, exactly(" ")),
      in_head("begin of target", "GET ", "p" + rest, exactly("/")),
      in_head("path", "GET /p", "41" + rest, either(is_target, "%")),
      in_head("path before no number", "GET /p", "zz" + rest, is_target),
      in_head("first digit in path", "GET /p%", "1" + rest, is_hex),
      in_head("second digit in path", "GET /p%4", rest, is_hex),
      in_head("query", "GET /p?q=", "41" + rest, either(is_target, "%")),
      in_head("query before no number", "GET /p?q=", "zz" + rest, is_target),
      in_head("first digit in query", "GET /p?q=%", "1" + rest, is_hex),
      in_head("second digit in query", "GET /p?q=%4", rest, is_hex),
      in_head("end of target", "GET /p", rest, is_target),
      in_head("blank behind target", "GET /p", "HTTP/1.1\r\n" + host, exactly(" ")),
      in_head("name of version", "GET /p HT", "P/1.1\r\n" + host, exactly("T")),
      in_head("slash of version", "GET /p HTTP", "1.1\r\n" + host, exactly("/")),
      in_head("major version", "GET /p HTTP/", ".1\r\n" + host, exactly("1")),
      in_head("point of version", "GET /p HTTP/1", "1\r\n" + host, exactly(".")),
      in_head("minor version", "GET /p HTTP/1.", "\r\n" + host, exactly("01")),
      in_head("behind version", "GET /p HTTP/1.1", "\r\n" + host, is_nothing),
      in_head("CR of the first line", "GET /p HTTP/1.1", "\n" + host, exactly("\r")),
      in_head("LF of the first line", "GET /p HTTP/1.1\r", host, exactly("\n")),
      in_head("begin of name", line, "X: v\r\n", is_token),
      in_head("name", line + "X", "Y: v\r\n", either(is_token, ":")),
      in_head("end of name", line + "X", ": v\r\n", either(is_token, ":")),
      in_head("colon", line + "X", " v\r\n", exactly(":")),
      in_head("before value", line + "X:", "v\r\n", is_text),
      in_head("value", line + "X: v", "w\r\n", is_text),
      in_head("end of value", line + "X: v", "\r\n", is_text),
      in_head("CR of a field", line + "X: v", "\n", exactly("\r")),
      in_head("LF of a field", line + "X: v\r", "", exactly("\n")),
      {"CR of the head", line, "\n", exactly("\r")},
      {"LF of the head", line + "\r", "", exactly("\n")},
  };
}

std::vector<Place> places_of_bodies() {
  return {
      in_head("length", "POST /p HTTP/1.1\r\n" + host + "Content-Length: ", "\r\n", exactly("0"))};
}

std::vector<Place> places_of_chunks() {
  return {
      in_chunk("before size", "", "3", exactly("0"), is_hex),
      in_chunk("behind size", "3", "", is_nothing, is_hex),
      in_chunk("blank before extension", "3", ";n=v", is_blank, is_hex),
      in_chunk("semicolon", "3", "n=v", exactly(";"), is_hex),
      in_chunk("blank before name", "3;", "n=v", either(is_token, " \t")),
      in_chunk("name of extension", "3;n", "m=v", either(is_token, ";")),
      in_chunk("end of name of extension", "3;n", "=v", either(is_token, " \t")),
      in_chunk("name without value", "3;n", "", is_token),
      in_chunk("equals", "3;n", "v", either(is_token, ";=")),
      in_chunk("begin of value", "3;n=", "v", either(is_token, " \t")),
      in_chunk("value of one letter", "3;n=", "", is_token),
      in_chunk("value of extension", "3;n=v", "w", either(is_token, ";")),
      in_chunk("end of value of extension", "3;n=v", "", is_token),
      in_chunk("between extensions", "3;n=v", ";m", either(is_token, " \t")),
      in_chunk("quoted value", "3;n=\"v", "w\"", is_quoted),
      in_chunk("begin of quoted value", "3;n=\"", "v\"", is_quoted),
      in_chunk("end of quoted value", "3;n=\"v", "\"",
               [](Byte byte) { return is_quoted(byte) && byte != '\\'; }),
      in_chunk("quoted pair", "3;n=\"\\", "\"", is_text),
      in_chunk("behind quoted value", "3;n=\"v\"", "", is_nothing),
      in_chunk("before next to quoted", "3;n=\"v\"", ";m=w", is_blank),
      in_chunk("next to quoted", "3;n=\"v\"", "m", exactly(";")),
      {"CR of a chunk's line", chunked + "3", "\nabc\r\n0\r\n\r\n", exactly("\r"), is_hex},
      {"LF of a chunk's line", chunked + "3\r", "abc\r\n0\r\n\r\n", exactly("\n")},
      {"CR behind extension", chunked + "3;n=v", "\nabc\r\n0\r\n\r\n", exactly("\r")},
      {"behind data", chunked + "3\r\nabc", "\r\n0\r\n\r\n", is_nothing},
      {"CR of data", chunked + "3\r\nabc", "\n0\r\n\r\n", exactly("\r")},
      {"LF of data", chunked + "3\r\nabc\r", "0\r\n\r\n", exactly("\n")},
      {"behind last size", chunked + "3\r\nabc\r\n0", "\r\n\r\n", exactly("0"), is_hex},
      {"extension of the last", chunked + "3\r\nabc\r\n0;n", "\r\n\r\n", is_token},
      {"CR of the last chunk", chunked + "3\r\nabc\r\n0", "\n\r\n", exactly("\r"), is_hex},
      {"LF of the last chunk", chunked + "3\r\nabc\r\n0\r", "\r\n", exactly("\n")},
      {"CR of the body", chunked + "3\r\nabc\r\n0\r\n", "\n", exactly("\r")},
      {"LF of the body", chunked + "3\r\nabc\r\n0\r\n\r", "", exactly("\n")},
      in_trailer("begin of trailer", "", "T: v\r\n", is_token),
      in_trailer("second trailer", "T: v\r\n", "U: v\r\n", is_token),
      in_trailer("name of trailer", "T", "U: v\r\n", either(is_token, ":")),
      in_trailer("end of name of trailer", "T", ": v\r\n", either(is_token, ":")),
      in_trailer("colon of trailer", "T", " v\r\n", exactly(":")),
      in_trailer("before value of trailer", "T:", "v\r\n", is_text),
      in_trailer("value of trailer", "T: v", "w\r\n", is_text),
      in_trailer("end of value of trailer", "T: v", "\r\n", is_text),
      in_trailer("CR of trailer", "T: v", "\n", exactly("\r")),
      in_trailer("LF of trailer", "T: v\r", "", exactly("\n")),
  };
}

/// Whether the first request ends where these bytes do. Another one stands behind them.
bool is_taken(const std::string& bytes, std::size_t piece) {
  static const Limits limits;
  RequestReader reader{limits};
  const std::string all = bytes + "GET /next HTTP/1.1\r\nHost: t\r\n\r\n";
  std::size_t used = 0;
  for (std::size_t come = 0; come < all.size();) {
    come = std::min(all.size(), come + piece);
    for (std::size_t more = 1; more > 0;) {
      more = reader.read(std::string_view{all}.substr(used, come - used));
      used += more;
      if (reader.stage() == RequestReader::Stage::refused) return false;
      if (reader.stage() != RequestReader::Stage::done) continue;
      const auto request = reader.take_request();
      return used == bytes.size() && (bytes.starts_with(chunked) == (request.body() == "abc"));
    }
  }
  return false;
}

TEST(Grammar, R03_EachByteIsTakenWhereItIsAllowedAndNowhereElse) {
  auto places = places_of_heads();
  for (auto* const more : {+places_of_bodies, +places_of_chunks})
    for (auto& place : more()) places.push_back(std::move(place));
  int asked = 0;
  for (const auto& place : places) {
    std::string wrongly_taken, wrongly_refused;
    for (int number = 0; number < 256; ++number) {
      const auto byte = static_cast<Byte>(number);
      if (place.changes_the_rest(byte) && !place.allowed(byte)) continue;
      const std::string bytes = place.before + static_cast<char>(byte) + place.after;
      for (const std::size_t piece : {bytes.size() + 100, std::size_t{1}}) {
        ++asked;
        const bool taken = is_taken(bytes, piece);
        if (taken == place.allowed(byte)) continue;
        (taken ? wrongly_taken : wrongly_refused) += fmt::format(" {:02x}", number);
      }
    }
    EXPECT_EQ(wrongly_taken, "") << place.name << ", until " << asked;
    EXPECT_EQ(wrongly_refused, "") << place.name << ", until " << asked;
  }
}

}  // namespace
}  // namespace sluice::http
