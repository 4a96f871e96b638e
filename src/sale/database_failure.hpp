/// What the database of the orders has failed, as opposed to the store.
#pragma once

#include "sluice/error.hpp"

namespace sluice::sale {

struct DatabaseFailure : Error {
  using Error::Error;
};

inline bool is_of_database(const Error& failure) {
  return dynamic_cast<const DatabaseFailure*>(&failure) || failure.errc() == Errc::database;
}

}  // namespace sluice::sale
