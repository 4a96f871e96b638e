/// What may be dangerous about a deployment of several servers: Sentinels and their master, or a
/// cluster.
#pragma once

#include "cli/doctor/finding.hpp"
#include "open/servers.hpp"

namespace sluice::cli {

void check_sentinels(const Servers& servers, Findings& findings);
void check_cluster(const Servers& servers, Findings& findings);
/// Of the servers that the URL names. Nothing is found where it wants no TLS.
void check_certificates(const Servers& servers, Findings& findings);

}  // namespace sluice::cli
