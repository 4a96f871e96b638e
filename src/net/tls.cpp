#include "net/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::net {
namespace {

using Outcome = Transfer::Outcome;

/// Takes the errors of this thread; the first is the cause.
std::string take_reason() {
  const auto code = ::ERR_get_error();
  ::ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
  return reason ? reason : "unknown reason";
}

[[noreturn]] void refuse(std::string_view what, const std::string& file) {
  throw Error{Errc::bad_argument, fmt::format("{}: {} ({})", file, what, take_reason())};
}

int size_for_ssl(std::size_t size) noexcept {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

// The socket as a BIO: it sends without SIGPIPE and goes on after an interruption, which OpenSSL's
// own does not.

Socket& socket_of(BIO* bio) noexcept { return *static_cast<Socket*>(::BIO_get_data(bio)); }

int give(BIO* bio, const Transfer& transfer) noexcept {
  ::BIO_clear_retry_flags(bio);
  if (transfer.outcome == Outcome::moved) return static_cast<int>(transfer.bytes);
  if (transfer.outcome == Outcome::closed) return 0;
  errno = transfer.error;
  return -1;
}

int bio_read(BIO* bio, char* into, int size) noexcept {
  const auto got = socket_of(bio).read_some({into, static_cast<std::size_t>(size)});
  const int result = give(bio, got);
  if (got.outcome == Outcome::would_block) ::BIO_set_retry_read(bio);
  return result;
}

int bio_write(BIO* bio, const char* bytes, int size) noexcept {
  const auto sent = socket_of(bio).write_some({bytes, static_cast<std::size_t>(size)});
  const int result = give(bio, sent);
  if (sent.outcome == Outcome::would_block) ::BIO_set_retry_write(bio);
  return result;
}

long bio_control(BIO*, int command, long, void*) noexcept {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = ::BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    ::BIO_meth_set_read(made, bio_read);
    ::BIO_meth_set_write(made, bio_write);
    ::BIO_meth_set_ctrl(made, bio_control);
    ::BIO_meth_set_create(made, [](BIO* bio) {
      ::BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(SSL_CTX* context, Socket socket, const TlsFailure& failed)
      : socket_(std::move(socket)), ssl_(::SSL_new(context), ::SSL_free), failed_(failed) {
    BIO* const bio = ssl_ ? ::BIO_new(socket_method()) : nullptr;
    if (!bio) throw std::bad_alloc{};
    ::BIO_set_data(bio, &socket_);
    ::SSL_set_bio(ssl_.get(), bio, bio);
  }
  ~TlsTransport() override {
    if (!broken_ && ::SSL_is_init_finished(ssl_.get()) != 0) ::SSL_shutdown(ssl_.get());
    ::ERR_clear_error();
  }

  SSL* ssl() const noexcept { return ssl_.get(); }

  /// As many records as there are and fit.
  Transfer read_some(std::span<char> into) noexcept override {
    std::size_t filled = 0;
    while (filled < into.size()) {
      ::ERR_clear_error();
      const auto rest = into.subspan(filled);
      const int got = ::SSL_read(ssl_.get(), rest.data(), size_for_ssl(rest.size()));
      if (got > 0) {
        filled += static_cast<std::size_t>(got);
        continue;
      }
      if (filled != 0) break;  // the same comes again, when it is asked again
      return result_of(got, read_wants_);
    }
    return {Outcome::moved, filled, 0};
  }
  Transfer write_some(std::string_view bytes) noexcept override {
    ::ERR_clear_error();
    const int sent = ::SSL_write(ssl_.get(), bytes.data(), size_for_ssl(bytes.size()));
    if (sent > 0) return {Outcome::moved, static_cast<std::size_t>(sent), 0};
    return result_of(sent, write_wants_);
  }
  Wants wants_to_read() const noexcept override { return read_wants_; }
  Wants wants_to_write() const noexcept override { return write_wants_; }
  bool is_established() const noexcept override { return ::SSL_is_init_finished(ssl_.get()) != 0; }
  int descriptor() const noexcept override { return socket_.descriptor(); }
  void shutdown() noexcept override { socket_.shutdown(); }

 private:
  Transfer result_of(int result, Wants& wants) noexcept {
    const int number = errno;
    switch (::SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ: wants = {.read = true, .write = false}; return {};
      case SSL_ERROR_WANT_WRITE: wants = {.read = false, .write = true}; return {};
      case SSL_ERROR_ZERO_RETURN: return {Outcome::closed, 0, 0};
      case SSL_ERROR_SYSCALL: return broken(number != 0 ? number : ECONNRESET);
      default: return broken(EPROTO);
    }
  }

  Transfer broken(int number) noexcept {
    if (!std::exchange(broken_, true) && ::SSL_is_init_finished(ssl_.get()) == 0) tell();
    ::ERR_clear_error();
    return {Outcome::failed, 0, number};
  }

  void tell() noexcept {
    const long verified = ::SSL_get_verify_result(ssl_.get());
    const std::string reason = ::ERR_peek_error() == 0 ? "the peer ended the connection"
                               : verified != X509_V_OK ? ::X509_verify_cert_error_string(verified)
                                                       : take_reason();
    failed_(reason);
  }

  Socket socket_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
  const TlsFailure& failed_;
  Wants read_wants_{.read = true, .write = false};
  Wants write_wants_{.read = false, .write = true};
  bool broken_ = false;
};

std::shared_ptr<SSL_CTX> make(const SSL_METHOD* method, const TlsFiles& files) {
  std::shared_ptr<SSL_CTX> context{::SSL_CTX_new(method), ::SSL_CTX_free};
  if (!context) throw std::bad_alloc{};
  auto* const raw = context.get();
  ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // A Buffer may move between two tries, and an idle connection is to cost little.
  ::SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
  ::ERR_clear_error();
  if (!files.certificate.empty() &&
      ::SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1)
    refuse("this certificate cannot be used", files.certificate);
  if (!files.key.empty() &&
      ::SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse("this private key cannot be used, or is not that of the certificate", files.key);
  if (!files.ca.empty() && ::SSL_CTX_load_verify_locations(raw, files.ca.c_str(), nullptr) != 1)
    refuse("these certificates cannot be used", files.ca);
  return context;
}

/// The name that the certificate must bear; a server is told it, too, if it is no address (SNI).
void expect(SSL* ssl, const std::string& host, bool verify) {
  if (host.empty()) return;  // a unix socket without server_name
  if (is_numeric(host)) {
    if (verify) ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str());
    return;
  }
  ::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));  // NOLINT: it copies
  if (verify) ::SSL_set1_host(ssl, host.c_str());
}

}  // namespace

TlsContext TlsContext::for_server(const TlsFiles& files) {
  auto context = make(::TLS_server_method(), files);
  static constexpr unsigned char name[] = "sluice";
  ::SSL_CTX_set_session_id_context(context.get(), name, sizeof name - 1);
  if (!files.ca.empty())
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return TlsContext{std::move(context), false};
}

TlsContext TlsContext::for_client(const TlsFiles& files) {
  auto context = make(::TLS_client_method(), files);
  if (files.ca.empty()) ::SSL_CTX_set_default_verify_paths(context.get());
  ::SSL_CTX_set_verify(context.get(), files.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return TlsContext{std::move(context), files.verify};
}

std::unique_ptr<Transport> TlsContext::accept(Socket socket, const TlsFailure& failed) const {
  auto transport = std::make_unique<TlsTransport>(context_.get(), std::move(socket), failed);
  ::SSL_set_accept_state(transport->ssl());
  return transport;
}

std::unique_ptr<Transport> TlsContext::connect(Socket socket, const std::string& host,
                                               const TlsFailure& failed) const {
  auto transport = std::make_unique<TlsTransport>(context_.get(), std::move(socket), failed);
  ::SSL_set_connect_state(transport->ssl());
  expect(transport->ssl(), host, verify_);
  return transport;
}

}  // namespace sluice::net
