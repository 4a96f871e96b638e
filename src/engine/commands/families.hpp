/// The families of commands; each has a file of its name.
#pragma once

#include "engine/core/context.hpp"

namespace sluice::engine {

CommandRows string_commands() noexcept;
CommandRows bit_commands() noexcept;
CommandRows lcs_commands() noexcept;
CommandRows geo_commands() noexcept;
CommandRows distinct_commands() noexcept;
CommandRows key_commands() noexcept;
CommandRows dump_commands() noexcept;
CommandRows sort_commands() noexcept;
CommandRows hash_commands() noexcept;
CommandRows list_commands() noexcept;
CommandRows set_commands() noexcept;
CommandRows sorted_set_commands() noexcept;
CommandRows sorted_set_range_commands() noexcept;
CommandRows sorted_set_store_commands() noexcept;
CommandRows stream_commands() noexcept;
CommandRows stream_read_commands() noexcept;
CommandRows stream_group_commands() noexcept;
CommandRows stream_claim_commands() noexcept;
CommandRows server_commands() noexcept;
CommandRows script_commands() noexcept;
CommandRows function_commands() noexcept;

}  // namespace sluice::engine
