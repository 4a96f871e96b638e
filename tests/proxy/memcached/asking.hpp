/// A request of memcached from its bytes to its plan.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "proxy/support/planning.hpp"

namespace sluice::proxy {

/// Reads one request and keeps what its plan views.
class Asked {
 public:
  Asked(const PoolSettings& settings, std::string bytes)
      : bytes_(std::move(bytes)),
        protocol_(make_memcached_protocol(settings)),
        reader_(protocol_->request_reader()),
        state(reader_->read(bytes_)) {
    if (state == RequestReader::State::complete) plan = protocol_->plan(reader_->words());
  }

  Protocol& protocol() { return *protocol_; }
  Words words() const { return reader_->words(); }
  std::string error_reply() const { return reader_->error_reply(); }
  std::size_t size() const { return reader_->size(); }
  /// What a server gets.
  std::string wire() {
    return std::string{plan.forward.empty() ? reader_->wire(bytes_) : plan.forward};
  }
  WordList keys() const {
    WordList found;
    for (const auto at : plan.keys) found.push_back(words()[at]);
    return found;
  }

 private:
  std::string bytes_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<RequestReader> reader_;

 public:
  RequestReader::State state;
  Plan plan;
};

inline Asked ask(std::string bytes) { return Asked{memcached_settings(), std::move(bytes)}; }

inline Asked ask_strictly(std::string bytes) {
  auto settings = memcached_settings();
  settings.compat = Compat::strict;
  return Asked{settings, std::move(bytes)};
}

}  // namespace sluice::proxy
