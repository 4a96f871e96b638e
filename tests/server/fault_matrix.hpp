/// What becomes of a service whose dependencies have a fault, as a table. The page of operations
/// shows the same one.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::test {

enum class Fault : std::uint8_t { away, refuses, slow, stands_still, full, read_only, rolled_back };

struct FaultRow {
  std::string_view dependency;
  Fault fault;
  std::string_view name;   ///< of the fault
  std::string_view ready;  ///< "200", "503"
  std::string_view alert;  ///< of sluice_service_trouble; "-": none
  std::string_view buyers;
  std::string_view operators;
};

inline constexpr std::string_view sold = "buy";
inline constexpr std::string_view not_sold = "503";
inline constexpr std::string_view recovers = "503, then buy";

inline constexpr FaultRow fault_matrix[] = {
    {"store", Fault::away, "is away", "503", "store", not_sold, "200"},
    {"store", Fault::refuses, "refuses", "503", "store", not_sold, "200"},
    {"store", Fault::slow, "is slow", "200", "-", sold, "200"},
    {"store", Fault::stands_still, "stands still", "503", "store", not_sold, "200"},
    {"store", Fault::full, "is full", "503", "store", not_sold, "200"},
    {"store", Fault::read_only, "is read-only", "503", "store", not_sold, "200"},
    {"store", Fault::rolled_back, "was rolled back", "200", "-", recovers, "200"},
    {"database", Fault::away, "is away", "200", "database", sold, "503"},
    {"database", Fault::refuses, "refuses", "200", "database", sold, "503"},
    {"database", Fault::slow, "is slow", "200", "-", sold, "200"},
    {"database", Fault::stands_still, "stands still", "200", "database", sold, "503"},
    {"database", Fault::full, "is full", "200", "database", sold, "200"},
    {"database", Fault::read_only, "is read-only", "200", "database", sold, "200"},
    {"database", Fault::rolled_back, "was rolled back", "200", "-", sold, "200"},
};

}  // namespace sluice::test
