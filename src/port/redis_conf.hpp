/// A redis.conf, as far as the engine at a port has what it asks for.
///
/// What would change what a user relies on, and is not to be had here (snapshots, replication,
/// cluster, memory limits), is refused. What has no effect here, and what is not known, is named
/// with its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/embedded/opened_engine.hpp"
#include "port/port.hpp"

namespace sluice::port {

struct PortConf {
  PortSettings port;
  engine::EmbeddedOptions engine;  ///< its path: the folder, empty where `appendonly` is `no`
  std::string folder = ".";        ///< `dir`
  /// What has no effect: "redis.conf:12: 'rdbcompression' has no effect here".
  std::vector<std::string> remarks;
};

/// `text`: of the file that `name` is. What the settings say before stays where the file says
/// nothing. Throws Error{bad_argument} that names file, line and word, and says what to do.
void read_redis_conf(std::string_view text, const std::string& name, PortConf& conf);

}  // namespace sluice::port
