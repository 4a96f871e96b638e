// Families that another file will bring.
#include "engine/engine.hpp"

namespace sluice::engine {

#if !__has_include("engine/stream.hpp")
void add_stream_commands(Handlers&) {}
#endif
#if !__has_include("engine/scripts.hpp")
void add_script_commands(Handlers&) {}
void Engine::execute(Context&, const Script&, Words, Words, Reply& reply) { reply.error("ERR no scripts"); }
#endif

}  // namespace sluice::engine
