/// What may be wrong with a service, and who is to know: a balancer, which asks whether buyers may
/// come here, or a person.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::server {

enum class Trouble : std::uint8_t { starts, stops, store, database, worker, sale };

struct TroubleRow {
  Trouble trouble;
  std::string_view name;
  bool is_ready;  ///< buyers are served nevertheless
  bool is_alert;  ///< a person is needed: sluice_service_trouble
  std::string_view what;
};

/// What is not ready comes first.
inline constexpr TroubleRow trouble_rows[] = {
    {Trouble::starts, "starts", false, false, "the address for buyers is not there yet"},
    {Trouble::stops, "stops", false, false, "the process is about to end"},
    {Trouble::store, "store", false, true, "the store does not answer, or takes no writes"},
    {Trouble::database, "database", true, true,
     "the database does not answer, or takes no writes; orders wait in the store"},
    {Trouble::worker, "worker", true, true,
     "the worker of a sale has ended; its orders wait in the store"},
    {Trouble::sale, "sale", true, true,
     "a sale cannot be loaded, or is archived and its database was restored from before; the "
     "others are sold"},
};

}  // namespace sluice::server
