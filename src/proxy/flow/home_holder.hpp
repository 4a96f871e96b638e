/// What stays at a server for longer than a request, because its keys are at home there.
#pragma once

namespace sluice::proxy::flow {

class HomeHolder {
 public:
  /// Homes may have moved: it ends, and its client is told, if its own have. False: a client that
  /// cannot be told is closed.
  virtual bool check_homes() = 0;

 protected:
  ~HomeHolder() = default;
};

}  // namespace sluice::proxy::flow
