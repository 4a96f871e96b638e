// Families that another file will bring.
#include "engine/engine.hpp"

namespace sluice::engine {

void add_string_commands(Handlers&) {}
void add_string_set_commands(Handlers&) {}
void add_bit_commands(Handlers&) {}
void add_bitfield_commands(Handlers&) {}
void add_key_commands(Handlers&) {}
void add_expiry_commands(Handlers&) {}
void add_scan_commands(Handlers&) {}
void add_hash_commands(Handlers&) {}
void add_list_commands(Handlers&) {}
void add_list_move_commands(Handlers&) {}
void add_set_commands(Handlers&) {}
void add_set_algebra_commands(Handlers&) {}
void add_sorted_set_commands(Handlers&) {}
void add_sorted_set_range_commands(Handlers&) {}
void add_sorted_set_store_commands(Handlers&) {}
void add_sorted_set_pop_commands(Handlers&) {}
void add_server_commands(Handlers&) {}
void add_info_commands(Handlers&) {}
#if !__has_include("engine/stream.hpp")
void add_stream_commands(Handlers&) {}
#endif
#if !__has_include("engine/scripts.hpp")
void add_script_commands(Handlers&) {}
void Engine::execute(Context&, const Script&, Words, Words, Reply& reply) { reply.error("ERR no scripts"); }
#endif

}  // namespace sluice::engine
