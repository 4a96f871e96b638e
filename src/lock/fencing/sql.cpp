#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "lock/hold/steps.hpp"
#include "sluice/fencing.hpp"

namespace sluice::fenced_sql {
namespace {

constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

/// A name as SQL takes it without quotes, a schema in front allowed.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.find_first_not_of(letters) == name.npos &&
         std::string_view{"0123456789."}.find(name.front()) == name.npos;
}

void check_identifier(std::string_view name) {
  if (!is_name(name))
    throw Error{Errc::bad_argument,
                lock::quoted(std::string{name}) + " is no name of a table or column in SQL"};
}

/// SQL of a caller, read as far as SQLite, PostgreSQL and MariaDB agree on where a text, a comment
/// or a parenthesis ends. What one of them could read otherwise is refused: it could end the
/// statement, or take the token out of it.
class CallersSql {
 public:
  /// `what`: "the condition".
  CallersSql(std::string_view what, std::string_view text) : what_(what), text_(text) {
    if (trimmed(text).empty()) refuse("is empty");
    check_letters();
    for (at_ = 0; at_ < text_.size(); ++at_) read(text_[at_]);
    if (depth_ != 0) refuse("has a '(' that is not closed");
    pieces_.push_back(text_.substr(piece_));
  }

  /// Between the commas that stand in no parenthesis.
  const std::vector<std::string_view>& pieces() const noexcept { return pieces_; }

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error{Errc::bad_argument, fmt::format("{} of a fenced statement {}: {}", what_, why,
                                                lock::quoted(std::string{text_}))};
  }

 private:
  void check_letters() const {
    for (std::size_t i = 0; i < text_.size();) {
      const auto length = utf8_length(text_.substr(i));
      const auto letter = static_cast<unsigned char>(text_[i]);
      if (length == 0 || letter == 0x7f ||
          (letter < 0x20 && letter != '\t' && letter != '\r' && letter != '\n'))
        refuse("has bytes that are no text");
      i += length;
    }
  }

  void read(char letter) {
    switch (letter) {
      case '\'':
      case '"':
      case '`': return quotation(letter);
      case '[': return brackets();
      case '(': ++depth_; return;
      case ')':
        if (depth_-- == 0) refuse("has a ')' too many");
        return;
      case ',':
        if (depth_ != 0) return;
        pieces_.push_back(text_.substr(piece_, at_ - piece_));
        piece_ = at_ + 1;
        return;
      case '-': return refuse_pair("--");
      case '/': return refuse_pair("/*");
      case '#': refuse("has a '#', which begins a comment in MariaDB");
      case ';': refuse("has a ';', which ends a statement");
      case '\\': refuse("has a '\\'");
      case ']': refuse("has a ']' too many");
      case '$': return dollar();
      default: return;
    }
  }

  /// A doubled quote is read as two quotations, which end at the same place.
  void quotation(char quote) {
    const auto end = text_.find(quote, at_ + 1);
    if (end == text_.npos) refuse(fmt::format("has a {} that is not closed", quote));
    if (text_.substr(at_, end - at_).contains('\\'))
      refuse("has a '\\' between quotes, which databases read differently: use a parameter");
    at_ = end;
  }

  /// An index of an array in PostgreSQL, a quotation in SQLite.
  void brackets() {
    const auto end = text_.find(']', at_ + 1);
    if (end == text_.npos) refuse("has a '[' that is not closed");
    const auto inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find_first_not_of(letters) != inside.npos &&
        inside.find_first_not_of("0123456789: ") != inside.npos)
      refuse("has more than a name or a number in brackets");
    at_ = end;
  }

  /// $1 and $name are parameters, $name$ quotes in PostgreSQL.
  void dollar() {
    const auto end = std::min(text_.find_first_not_of(letters, at_ + 1), text_.size());
    if (end < text_.size() && text_[end] == '$') refuse("has a text in '$'");
  }

  void refuse_pair(std::string_view comment) const {
    if (text_.substr(at_).starts_with(comment))
      refuse(fmt::format("has a '{}', which begins a comment", comment));
  }

  std::string_view what_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t piece_ = 0;
  std::size_t depth_ = 0;
  std::vector<std::string_view> pieces_;
};

/// A column, in quotes or not, or one element of it, or a row of columns.
bool can_be_assigned(std::string_view name) {
  if (name.size() < 3) return is_name(name);
  const char first = name.front(), last = name.back();
  return is_name(name) || (first == '(' && last == ')') ||
         (first == last && (last == '"' || last == '`')) ||
         (last == ']' && is_name(name.substr(0, name.find('['))));
}

bool is_token(std::string_view name) {
  std::string column;
  for (const char c : name.substr(name.rfind('.') + 1))
    if (c != '"' && c != '`') column += static_cast<char>(c | 0x20);
  return column == "token";
}

void check_assignments(std::string_view text) {
  const CallersSql sql{"the assignments", text};
  for (const auto piece : sql.pieces()) {
    const auto equals = piece.find('=');
    const auto name = trimmed(piece.substr(0, equals));
    const auto value =
        equals == piece.npos ? std::string_view{} : trimmed(piece.substr(equals + 1));
    if (!can_be_assigned(name) || value.empty() || value.front() == '=')
      sql.refuse("are not of the form 'column = value, column = value'");
    if (is_token(name)) sql.refuse("set the token, which is set already");
  }
}

}  // namespace

std::string update(std::string_view table, std::string_view assignments, std::string_view where) {
  check_identifier(table);
  check_assignments(assignments);
  static_cast<void>(CallersSql{"the condition", where});
  return fmt::format("UPDATE {} SET {}\n, {} WHERE ({}\n) AND {}", table, assignments, assignment,
                     where, condition);
}

std::string upsert(std::string_view table, std::span<const std::string_view> keys,
                   std::span<const std::string_view> columns) {
  check_identifier(table);
  std::ranges::for_each(keys, check_identifier);
  std::ranges::for_each(columns, check_identifier);
  if (keys.empty() || columns.empty())
    throw Error{Errc::bad_argument, "a fenced upsert needs columns, some of them its key"};

  std::vector<std::string_view> all(keys.begin(), keys.end());
  all.insert(all.end(), columns.begin(), columns.end());
  all.push_back("token");
  std::string changes;
  for (const auto changed : std::span{all}.subspan(keys.size()))
    changes += fmt::format("{}{} = excluded.{}", changes.empty() ? "" : ", ", changed, changed);
  return fmt::format(
      "INSERT INTO {0} ({1}) VALUES (:{2}) ON CONFLICT ({3}) DO UPDATE SET {4} "
      "WHERE {0}.token <= excluded.token",
      table, fmt::join(all, ", "), fmt::join(all, ", :"), fmt::join(keys, ", "), changes);
}

std::string upsert(std::string_view table, std::initializer_list<std::string_view> keys,
                   std::initializer_list<std::string_view> columns) {
  return upsert(table, std::span{keys.begin(), keys.size()},
                std::span{columns.begin(), columns.size()});
}

}  // namespace sluice::fenced_sql
