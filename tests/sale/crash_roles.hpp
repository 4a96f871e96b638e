/// The processes of the crash tests: this same program, started with a role instead of tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {

constexpr int crash_buyers = rounds(10'000);
constexpr int crash_clicks = 6;  // the same request twice, then another one, and once more
constexpr int crash_stock = rounds(6'000);

struct CrashSetting {
  std::string url;  ///< of the Store
  std::string sale;
  std::string orders;              ///< URL of the database
  std::filesystem::path journals;  ///< folder: what buyers were told, a line each
};

/// What a buyer was told: an order, as the journal has it.
struct Told {
  std::string buyer;
  std::string request;
  std::string outcome;
  std::string number;  ///< empty: no order
  std::int64_t id = 0;
};

/// Serves every `sellers`-th buyer from `index` on, from where its journal ends; exits 0 when all
/// have clicked.
Process start_seller(const CrashSetting& setting, int index, int sellers);
/// Like a seller, but buyers click once each, round after round, wait while the sale recovers, and
/// come again until a file `end` lies among the journals.
Process start_patient_seller(const CrashSetting& setting, int index, int sellers);
/// Brings orders in until SIGTERM.
Process start_worker(const CrashSetting& setting);
/// Does both in one process; exits 0 when all have clicked and every order is in.
Process start_shop(const CrashSetting& setting);

/// Whole lines only: a killed process may have left half of one.
std::vector<Told> read_journals(const std::filesystem::path& folder);

/// What the program is to do instead of tests; empty: it was started without a role.
std::optional<int> play_role(int argc, char** argv);

}  // namespace sluice::test
