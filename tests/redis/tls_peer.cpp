#include "redis/tls_peer.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "resp/request_parser.hpp"

namespace sluice::test {
namespace {

void send(SSL* ssl, std::string_view bytes) {
  ::SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size()));  // blocks until all is sent
}

}  // namespace

TlsPeer::TlsPeer(const Certificates& files)
    : context_(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free),
      listener_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
  if (::SSL_CTX_use_certificate_file(context_.get(), files["server.pem"].c_str(),
                                     SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_use_PrivateKey_file(context_.get(), files["server.key"].c_str(),
                                    SSL_FILETYPE_PEM) != 1)
    throw std::runtime_error{"no certificate"};
  ::SSL_CTX_set_msg_callback(context_.get(), [](int is_sent, int, int type, const void* bytes,
                                                std::size_t size, SSL*, void* self) {
    const auto* const message = static_cast<const unsigned char*>(bytes);
    if (is_sent == 0 && type == SSL3_RT_HANDSHAKE && size > 0 && *message == SSL3_MT_KEY_UPDATE)
      ++static_cast<TlsPeer*>(self)->key_updates_;
  });
  SSL_CTX_set_msg_callback_arg(context_.get(), this);

  sockaddr_in6 address{};  // takes IPv4, too
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, name, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, name, &size) != 0)
    throw std::system_error{errno, std::generic_category(), "listen"};
  port_ = ntohs(address.sin6_port);
  thread_ = std::thread{[this] { run(); }};
}

TlsPeer::~TlsPeer() {
  over_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  {
    const std::lock_guard lock{mutex_};
    if (served_ >= 0) ::shutdown(served_, SHUT_RDWR);
  }
  thread_.join();
  ::close(listener_);
}

std::vector<std::string> TlsPeer::names() const {
  const std::lock_guard lock{mutex_};
  return names_;
}

void TlsPeer::run() {
  while (!over_) {
    const int accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0) continue;
    {
      const std::lock_guard lock{mutex_};
      served_ = accepted;
      if (over_) ::shutdown(accepted, SHUT_RDWR);
    }
    serve(accepted);
    const std::lock_guard lock{mutex_};
    served_ = -1;
    ::close(accepted);
  }
}

void TlsPeer::serve(int descriptor) {
  const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl{::SSL_new(context_.get()), ::SSL_free};
  ::SSL_set_fd(ssl.get(), descriptor);
  if (::SSL_accept(ssl.get()) != 1) return;
  {
    const char* const name = ::SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name);
    const std::lock_guard lock{mutex_};
    names_.emplace_back(name ? name : "-");
  }
  std::string input;
  resp::RequestParser parser;
  std::array<char, 16 * 1024> bytes;
  for (int got = 0; (got = ::SSL_read(ssl.get(), bytes.data(), bytes.size())) > 0;) {
    input.append(bytes.data(), static_cast<std::size_t>(got));
    while (!input.empty() && parser.parse(input) == resp::RequestParser::State::complete) {
      const std::vector<std::string> words{parser.words().begin(), parser.words().end()};
      input.erase(0, parser.size());
      if (words[0] == "HELLO") send(ssl.get(), "%1\r\n$5\r\nproto\r\n:3\r\n");
      if (words[0] == "PING") send(ssl.get(), "+PONG\r\n");
      if (words[0] == "SET") {
        values_[words[1]] = words[2];
        send(ssl.get(), "+OK\r\n");
      }
      if (words[0] == "GET") {
        const auto& value = values_[words[1]];
        send(ssl.get(), "$" + std::to_string(value.size()) + "\r\n");
        ::SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED);  // in the middle of a reply
        send(ssl.get(), value);
        send(ssl.get(), "\r\n");
      }
    }
  }
}

}  // namespace sluice::test
