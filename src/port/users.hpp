/// Users that may log in, and their rights: the lines `user` of a redis.conf, or of an aclfile.
///
/// Threads: one; each thread of a port has its own.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/rights.hpp"

namespace sluice::port {

struct User {
  std::string name;
  bool is_on = false;
  bool wants_password = true;
  std::vector<std::string> passwords;  ///< SHA-256, in hex
  std::string words;                   ///< of its rights
  /// Null: it may do everything.
  std::unique_ptr<front::Rights> rights;

  bool is_admitted_by(std::string_view password) const;
  /// As ACL LIST shows it.
  std::string describe() const;
};

class Users {
 public:
  /// `lines`: "NAME on >secret ~* +@all", without the word `user`. Where none is named so there is
  /// a user "default", who may do everything, with `password` if that is not empty. Throws
  /// Error{bad_argument} that names the user and the word.
  Users(const std::vector<std::string>& lines, std::string_view password);

  /// Null: there is none.
  User* find(std::string_view name) noexcept;
  /// Whom a connection has before it logs in. Null: it has to log in.
  User* newcomer() noexcept;
  const std::map<std::string, User, std::less<>>& all() const noexcept { return users_; }

 private:
  void read(const std::string& line);

  front::OtherCommands none_;
  std::map<std::string, User, std::less<>> users_;
};

}  // namespace sluice::port
