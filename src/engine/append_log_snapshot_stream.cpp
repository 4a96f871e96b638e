#include "engine/append_log_snapshot.hpp"
#include "engine/object.hpp"

namespace sluice::engine {

void append_stream(std::string&, std::string_view, const Stream&) {}

}  // namespace sluice::engine
