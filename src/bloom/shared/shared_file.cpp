#include "bloom/shared/shared_file.hpp"

namespace sluice::bloom {

Task<void> save(std::shared_ptr<SharedFilter> filter, std::string path) {
  co_await filter->read();
  throw Error{Errc::server, path};
}
Task<void> load(std::shared_ptr<SharedFilter> filter, std::string path) {
  co_await filter->read();
  throw Error{Errc::server, path};
}

}  // namespace sluice::bloom
