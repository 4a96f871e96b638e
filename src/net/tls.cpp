#include "net/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "net/tls_words.hpp"

namespace sluice::net {
namespace {

using Outcome = Transfer::Outcome;

[[noreturn]] void refuse(std::string_view what, const std::string& file) {
  throw Error{Errc::bad_argument, fmt::format("{}: {} ({})", file, what, take_reason())};
}

int size_for_ssl(std::size_t size) noexcept {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

/// OpenSSL's buffer for what it has received: more than the largest record.
constexpr std::size_t received_at_once = 20 * 1024;
static_assert(Transport::whole_read >= 2 * received_at_once);

class TlsTransport final : public Transport {
 public:
  TlsTransport(SSL_CTX* context, Socket socket, const TlsFailure& failed);
  ~TlsTransport() override { end(); }

  SSL* ssl() const noexcept { return ssl_.get(); }
  /// What was dialled, for messages.
  void set_host(const std::string& host) { host_ = host; }

  Transfer read_some(std::span<char> into) noexcept override;
  Transfer write_some(std::string_view bytes) noexcept override;
  Wants wants_to_read() const noexcept override { return of_now(read_wants_); }
  Wants wants_to_write() const noexcept override { return of_now(write_wants_); }
  bool is_established() const noexcept override { return of_now(established_); }
  std::optional<WallTime> certificate_ends() const noexcept override;
  int descriptor() const noexcept override { return socket_.descriptor(); }
  void shutdown() noexcept override {
    end();
    socket_.shutdown();
  }

  /// The socket as a BIO: it sends without SIGPIPE and goes on after an interruption, which
  /// OpenSSL's own does not.
  static BIO_METHOD* method();
  static int on_verified(int good, X509_STORE_CTX* verification) noexcept;

 private:
  using Lock = std::lock_guard<std::mutex>;

  static TlsTransport& of(BIO* bio) noexcept {
    return *static_cast<TlsTransport*>(::BIO_get_data(bio));
  }
  static int receive(BIO* bio, char* into, int size) noexcept;
  static int send(BIO* bio, const char* bytes, int size) noexcept;

  template <class T>
  T of_now(const T& value) const noexcept {
    const Lock lock{mutex_};
    return value;
  }
  void end() noexcept;
  // REQUIRES: mutex_ is held
  Transfer read_records(std::span<char> into, std::optional<Error>& why) noexcept;
  Transfer result_of(int result, Wants& wants, std::optional<Error>& why) noexcept;
  Transfer broken(int number, std::optional<Error>& why) noexcept;
  void note_progress() noexcept { established_ |= ::SSL_is_init_finished(ssl()) != 0; }

  mutable std::mutex mutex_;
  Socket socket_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
  const TlsFailure& failed_;
  std::string host_;
  std::string refused_;  // why the peer's certificate will not do
  Wants read_wants_{.read = true, .write = false};
  Wants write_wants_{.read = false, .write = true};
  std::optional<Transfer> refusal_;  // a write that the peer took no more
  bool established_ = false;
  bool broken_ = false;
  // Of one read: what it has, for how much more there is room, and whether a short receipt has
  // emptied the socket.
  std::size_t filled_ = 0;
  std::size_t room_ = 0;
  bool drained_ = false;
};

int give(const Transfer& transfer) noexcept {
  if (transfer.outcome == Outcome::moved) return static_cast<int>(transfer.bytes);
  if (transfer.outcome == Outcome::closed) return 0;
  errno = transfer.error;
  return -1;
}

/// One system call brings what is there. A read that has something asks again only where the socket
/// may have more and all of that will fit: nothing is left in OpenSSL's buffer then.
int TlsTransport::receive(BIO* bio, char* into, int size) noexcept {
  ::BIO_clear_retry_flags(bio);
  auto& self = of(bio);
  Transfer got;
  if (self.filled_ == 0 || (!self.drained_ && self.room_ >= received_at_once))
    got = self.socket_.read_some({into, static_cast<std::size_t>(size)});
  self.drained_ = got.bytes < static_cast<std::size_t>(size);
  if (got.outcome == Outcome::would_block) ::BIO_set_retry_read(bio);
  return give(got);
}

int TlsTransport::send(BIO* bio, const char* bytes, int size) noexcept {
  ::BIO_clear_retry_flags(bio);
  auto& self = of(bio);
  const auto sent = self.socket_.write_some({bytes, static_cast<std::size_t>(size)});
  if (sent.outcome == Outcome::would_block) ::BIO_set_retry_write(bio);
  if (sent.is_refused()) {
    self.refusal_ = sent;
    if (!self.established_) return size;  // the handshake goes on to read why
  }
  return give(sent);
}

BIO_METHOD* TlsTransport::method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = ::BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    ::BIO_meth_set_read(made, receive);
    ::BIO_meth_set_write(made, send);
    ::BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
      return command == BIO_CTRL_FLUSH ? 1 : 0;
    });
    ::BIO_meth_set_create(made, [](BIO* bio) {
      ::BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

TlsTransport::TlsTransport(SSL_CTX* context, Socket socket, const TlsFailure& failed)
    : socket_(std::move(socket)), ssl_(::SSL_new(context), ::SSL_free), failed_(failed) {
  BIO* const bio = ssl_ ? ::BIO_new(method()) : nullptr;
  if (!bio) throw std::bad_alloc{};
  ::BIO_set_data(bio, this);
  ::SSL_set_bio(ssl(), bio, bio);
  SSL_set_app_data(ssl(), this);
}

/// Tells the peer that nothing more comes, if there is room for that.
void TlsTransport::end() noexcept {
  const Lock lock{mutex_};
  if (!std::exchange(broken_, true) && established_ && !refusal_) ::SSL_shutdown(ssl());
  ::ERR_clear_error();
}

int TlsTransport::on_verified(int good, X509_STORE_CTX* verification) noexcept {
  if (good != 1) {
    const auto* const ssl = static_cast<const SSL*>(
        ::X509_STORE_CTX_get_ex_data(verification, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto& self = *static_cast<TlsTransport*>(SSL_get_app_data(ssl));
    if (self.refused_.empty()) self.refused_ = words_for_certificate(verification, self.host_);
  }
  return good;
}

Transfer TlsTransport::read_some(std::span<char> into) noexcept {
  std::optional<Error> why;
  Transfer result;
  {
    const Lock lock{mutex_};
    result = read_records(into, why);
    filled_ = 0;
  }
  if (why) failed_(*why);
  return result;
}

/// As many records as there are and fit.
Transfer TlsTransport::read_records(std::span<char> into, std::optional<Error>& why) noexcept {
  drained_ = false;
  for (filled_ = 0; filled_ < into.size();) {
    ::ERR_clear_error();
    const auto rest = into.subspan(filled_);
    room_ = rest.size();
    const int got = ::SSL_read(ssl(), rest.data(), size_for_ssl(rest.size()));
    note_progress();
    if (got > 0) {
      filled_ += static_cast<std::size_t>(got);
      continue;
    }
    if (filled_ != 0) break;  // the same comes again, when it is asked again
    return result_of(got, read_wants_, why);
  }
  return {Outcome::moved, filled_, 0};
}

Transfer TlsTransport::write_some(std::string_view bytes) noexcept {
  std::optional<Error> why;
  Transfer result;
  {
    const Lock lock{mutex_};
    ::ERR_clear_error();
    const int sent =
        refusal_ && established_ ? 0 : ::SSL_write(ssl(), bytes.data(), size_for_ssl(bytes.size()));
    note_progress();
    if (sent > 0)
      result = {Outcome::moved, static_cast<std::size_t>(sent), 0};
    else if (refusal_ && established_)
      result = *refusal_;  // a read finds the end, and perhaps an alert before it
    else
      result = result_of(sent, write_wants_, why);
  }
  if (why) failed_(*why);
  return result;
}

Transfer TlsTransport::result_of(int result, Wants& wants, std::optional<Error>& why) noexcept {
  const int number = errno;
  switch (::SSL_get_error(ssl(), result)) {
    case SSL_ERROR_WANT_READ: wants = {.read = true, .write = false}; return {};
    case SSL_ERROR_WANT_WRITE: wants = {.read = false, .write = true}; return {};
    case SSL_ERROR_ZERO_RETURN: return {Outcome::closed, 0, 0};
    case SSL_ERROR_SYSCALL: return broken(number != 0 ? number : ECONNRESET, why);
    default: return broken(EPROTO, why);
  }
}

/// The end of a connection that stood is no failure of TLS; an alert is.
Transfer TlsTransport::broken(int number, std::optional<Error>& why) noexcept {
  if (!std::exchange(broken_, true) && (!established_ || number == EPROTO))
    why = words_for_end(ssl(), refused_);
  ::ERR_clear_error();
  return {Outcome::failed, 0, number};
}

std::optional<WallTime> TlsTransport::certificate_ends() const noexcept {
  const Lock lock{mutex_};
  const X509* const shown = ::SSL_get0_peer_certificate(ssl());
  if (!shown) return {};
  return to_wall_time(::X509_get0_notAfter(shown));
}

/// Of those that `openssl rehash` makes: "9d66eef0.0".
bool is_hash_name(const std::string& name) {
  return name.size() >= 10 && name[8] == '.' && name.find_first_not_of("0123456789abcdef") == 8;
}

void trust(SSL_CTX* context, const std::string& ca) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(ca, ignored)) {
    if (::SSL_CTX_load_verify_file(context, ca.c_str()) != 1)
      refuse("these certificates cannot be used", ca);
    return;
  }
  const std::filesystem::directory_iterator files{ca, ignored};
  if (std::none_of(begin(files), end(files),
                   [](const auto& file) { return is_hash_name(file.path().filename().string()); }))
    throw Error{Errc::bad_argument,
                fmt::format("{}: no certificate in this folder has a name that OpenSSL looks for; "
                            "run: openssl rehash {}",
                            ca, ca)};
  if (::SSL_CTX_load_verify_dir(context, ca.c_str()) != 1)
    refuse("the certificates of this folder cannot be used", ca);
}

std::shared_ptr<SSL_CTX> make(const SSL_METHOD* method, const TlsFiles& files) {
  std::shared_ptr<SSL_CTX> context{::SSL_CTX_new(method), ::SSL_CTX_free};
  if (!context) throw std::bad_alloc{};
  auto* const raw = context.get();
  ::SSL_CTX_set_min_proto_version(
      raw, files.least == TlsVersion::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // A Buffer may move between two tries, and an idle connection is to cost little.
  ::SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_read_ahead(raw, 1);  // a record by one system call, not two
  // Else OpenSSL asks for the password of a key at the terminal.
  ::SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return -1; });
  ::ERR_clear_error();
  if (!files.certificate.empty() &&
      ::SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1)
    refuse("this certificate cannot be used", files.certificate);
  if (!files.key.empty() &&
      ::SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse("this private key cannot be used: it is not that of the certificate, or has a password",
           files.key);
  if (!files.ca.empty()) trust(raw, files.ca);
  return context;
}

/// The name that the certificate must bear; a server is told it, too, if it is no address (SNI).
/// Throws Error{bad_argument} rather than to leave the name unverified.
void expect(SSL* ssl, std::string host, bool verify) {
  if (host.empty()) return;                                     // a unix socket without server_name
  if (host.ends_with('.') && host.size() > 1) host.pop_back();  // of DNS, in no certificate
  const bool is_address = is_numeric(host);
  const bool is_told = is_address || ::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                                TLSEXT_NAMETYPE_host_name, host.data()) == 1;
  const auto is_demanded = [&] {
    ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return is_address ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str()) == 1
                      : ::SSL_set1_host(ssl, host.c_str()) == 1;
  };
  if (!is_told || (verify && !is_demanded()))
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no name or address that a certificate can bear", host)};
}

}  // namespace

TlsContext TlsContext::for_server(const TlsFiles& files) {
  auto context = make(::TLS_server_method(), files);
  static constexpr unsigned char name[] = "sluice";
  ::SSL_CTX_set_session_id_context(context.get(), name, sizeof name - 1);
  if (!files.ca.empty())
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         TlsTransport::on_verified);
  return TlsContext{std::move(context), false};
}

TlsContext TlsContext::for_client(const TlsFiles& files) {
  auto context = make(::TLS_client_method(), files);
  ::SSL_CTX_clear_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);  // few, and seldom idle
  if (files.ca.empty()) ::SSL_CTX_set_default_verify_paths(context.get());
  ::SSL_CTX_set_verify(context.get(), files.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       files.verify ? TlsTransport::on_verified : nullptr);
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
  transport->set_host(host);
  expect(transport->ssl(), host, verify_);
  return transport;
}

std::optional<WallTime> TlsContext::certificate_ends() const {
  const X509* const own = ::SSL_CTX_get0_certificate(context_.get());
  if (!own) return {};
  return to_wall_time(::X509_get0_notAfter(own));
}

}  // namespace sluice::net
