#include "front/client_line.hpp"

#include <fmt/format.h>

namespace sluice::front {

std::string to_string(const ClientLine& line, const OwnWords& words) {
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 "
      "tot-mem={} events=r cmd={} user={} redir={} resp={} lib-name={} lib-ver={}\n",
      line.id, line.address, line.local_address, line.descriptor, words.of("name"), line.age_s,
      line.idle_s, line.flags, line.database, line.channels, line.patterns, line.shards,
      line.queued, line.unread, line.unsent, line.memory, line.command, line.user, line.redirect,
      line.protocol, words.of("lib-name"), words.of("lib-ver"));
}

}  // namespace sluice::front
