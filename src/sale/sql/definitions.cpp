#include "sale/order_store_text.hpp"
#include "sale/sql/order_store.hpp"

namespace sluice::sale {

void SqlOrderStore::keep_definition(const std::string& sale, const Fields& fields) {
  sessions_.in_transaction([&](Connection& at) {
    const auto id = locked_id(at, sale);
    for (const auto& [field, value] : fields) {
      const auto text = to_column(value);
      at.sql << "INSERT INTO sale_definitions (sale, field, value) VALUES (:s, :f, :v) " +
                    unless_there("sale"),
          soci::use(id), soci::use(field), soci::use(text);
    }
    return true;
  });
}

void SqlOrderStore::change_definition(const std::string& sale, const std::string& field,
                                      const std::string& value) {
  sessions_.in_transaction([&](Connection& at) {
    const auto id = locked_id(at, sale);
    const auto text = to_column(value);
    at.sql << "UPDATE sale_definitions SET value = :v WHERE sale = :s AND field = :f",
        soci::use(text), soci::use(id), soci::use(field);
    return true;
  });
}

OrderStore::Fields SqlOrderStore::definition(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) {
    Fields fields;
    const auto id = find_sale(at, sale);
    if (!id) return fields;
    constexpr std::size_t most = 100;
    std::vector<std::string> field(most);
    std::vector<std::string> value(most);
    const long long in_sale = *id;
    soci::statement select =
        (at.sql.prepare << "SELECT field, value FROM sale_definitions WHERE sale = :s",
         soci::use(in_sale), soci::into(field), soci::into(value));
    if (!select.execute(true)) return fields;
    for (std::size_t i = 0; i < field.size(); ++i)
      fields.emplace_back(field[i], from_column(value[i]));
    return fields;
  });
}

}  // namespace sluice::sale
