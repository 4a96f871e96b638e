#include "sale/sql/schemes.hpp"

namespace sluice::sale {

std::span<const Scheme> schemes() {
  static constexpr Scheme all[] = {{"sqlite:", sqlite_dialect}};
  return all;
}

std::string_view known_schemes() {
  return "sqlite: (as in sqlite:/var/lib/shop/orders.db; a program that links "
         "sluice::sale_databases knows postgresql:// and mariadb://, too)";
}

}  // namespace sluice::sale
