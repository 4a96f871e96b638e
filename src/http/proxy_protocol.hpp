/// The header by which a balancer says for whom it connects, before anything else is sent: version
/// 2 of the PROXY protocol (HAProxy, doc/proxy-protocol.txt). It decides and does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::http {

class ProxyHeader {
 public:
  enum class Stage : std::uint8_t {
    coming,
    done,
    refused  ///< refusal() says why
  };

  /// How many bytes may be read now: what comes behind the header is not of it. 0: no more.
  std::size_t wants() const noexcept;
  /// REQUIRES: no more than wants() of them.
  Stage read(std::string_view bytes);

  Stage stage() const noexcept { return stage_; }
  /// Nothing has come.
  bool is_empty() const noexcept { return bytes_.empty(); }
  /// REQUIRES: stage() is `refused`. A literal.
  std::string_view refusal() const noexcept { return refusal_; }

  /// The balancer asks for itself, or does not know for whom: the client is who has connected.
  bool names_client() const noexcept { return names_client_; }
  /// The numeric address of the client, without its port. Empty: that of a unix socket.
  const std::string& client() const noexcept { return client_; }

 private:
  Stage refuse(std::string_view why) noexcept;
  Stage end_of_start();
  Stage end_of_header();
  bool has_whole_extensions(std::size_t from) const noexcept;

  std::string bytes_;
  std::size_t size_ = 0;  // of the whole header; 0: not known yet
  std::string client_;
  std::string_view refusal_;
  Stage stage_ = Stage::coming;
  bool names_client_ = false;
};

}  // namespace sluice::http
