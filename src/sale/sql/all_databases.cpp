#include "sale/sql/schemes.hpp"

namespace sluice::sale {

std::span<const Scheme> schemes() {
  static constexpr Scheme all[] = {{"sqlite:", sqlite_dialect},
                                   {"postgresql:", postgresql_dialect},
                                   {"postgres:", postgresql_dialect},
                                   {"mariadb:", mariadb_dialect},
                                   {"mysql:", mariadb_dialect}};
  return all;
}

std::string_view known_schemes() {
  return "sqlite:, postgresql://, mariadb:// or mysql:// (as in sqlite:/var/lib/shop/orders.db, "
         "postgresql://user:password@host/database)";
}

}  // namespace sluice::sale
