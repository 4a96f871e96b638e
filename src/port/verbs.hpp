/// The commands that the port answers itself: those of a connection, not of the data.
#pragma once

#include "port/connection.hpp"

namespace sluice::port {

struct Connection::Verb {
  std::string_view name;
  Serve Connection::*serve = nullptr;
  bool ends_queue = false;       ///< in a transaction it is done at once, not queued
  bool while_listening = false;  ///< a client of RESP2 that listens may say it

  /// SUBSCRIBE and its kin: the client hears of it whether it wants replies or not.
  bool answers_by_push() const noexcept { return while_listening && !ends_queue; }
};

}  // namespace sluice::port
