#include "sluice/error.hpp"

namespace sluice {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "sluice"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::bad_argument: return "bad argument";
      case Errc::connection: return "no connection";
      case Errc::timeout: return "timed out";
      case Errc::authentication: return "not permitted";
      case Errc::wrong_type: return "wrong type";
      case Errc::script: return "script error";
      case Errc::server: return "server error";
      case Errc::protocol: return "protocol error";
      case Errc::read_only: return "read only";
      case Errc::out_of_space: return "out of space";
      case Errc::corrupt: return "corrupt";
      case Errc::in_use: return "in use";
      case Errc::config_mismatch: return "configuration mismatch";
      case Errc::closed: return "closed";
      case Errc::database: return "database error";
      case Errc::unsynced: return "not replicated";
      case Errc::overloaded: return "overloaded";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

std::string_view to_string(Effect effect) noexcept {
  switch (effect) {
    case Effect::none: return "none";
    case Effect::done: return "done";
    case Effect::unknown: return "unknown";
  }
  return "unknown";
}

}  // namespace sluice
