/// All keys of a server at one moment: what an RDB file or a replica that lags has.
#pragma once

#include <string>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::simulation {

class Snapshot {
 public:
  /// REQUIRES: a Store that answers at once.
  static Snapshot of(Store& store);

  /// The server has these keys and no others then; what has ended since is gone at once.
  void load_into(Store& store) const;

 private:
  std::vector<std::vector<std::string>> commands_;  // that make the keys
};

}  // namespace sluice::simulation
