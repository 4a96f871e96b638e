// The two sides of TLS over a socket, a step at a time: what the peer said before it took no more.
#include "net/tls.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>

#include "support/certificates.hpp"
#include "support/loopback_pair.hpp"

namespace sluice::net {
namespace {

using Outcome = Transfer::Outcome;

class TlsWords : public testing::Test {
 protected:
  static TlsContext client_context() {
    return TlsContext::for_client({.certificate = {}, .key = {}, .ca = files()["ca.pem"]});
  }
  static test::Certificates& files() {
    static test::Certificates made;
    return made;
  }
  std::unique_ptr<Transport> client() {
    return client_context().connect(std::move(pair_.client), "127.0.0.1", failed_);
  }
  const Error& why() const {
    static const Error nothing{Errc::bad_argument, "nothing was told"};
    return why_ ? *why_ : nothing;
  }

  test::LoopbackPair pair_;
  std::array<char, Transport::whole_read> bytes_{};

 private:
  std::optional<Error> why_;
  const TlsFailure failed_ = [this](const Error& why) { why_ = why; };
};

TEST_F(TlsWords, AnAlertIsHeardAfterAWriteThatWasRefused) {
  const auto client = TlsWords::client();
  const TlsFailure ignored = [](const Error&) {};
  const auto context = TlsContext::for_server({.certificate = files()["server.pem"],
                                               .key = files()["server.key"],
                                               .ca = files()["ca.pem"]});
  auto server = context.accept(std::move(pair_.server), ignored);
  while (!client->is_established()) {
    ASSERT_EQ(client->read_some(bytes_).outcome, Outcome::would_block);
    if (!client->is_established()) {
      ASSERT_EQ(server->read_some(bytes_).outcome, Outcome::would_block);
    }
  }
  EXPECT_EQ(server->read_some(bytes_).outcome, Outcome::failed);  // no certificate
  server.reset();
  const auto written = client->write_some("PING\r\n");
  EXPECT_TRUE(written.is_refused()) << written.error;
  EXPECT_TRUE(client->write_some("PING\r\n").is_refused());
  EXPECT_EQ(client->read_some(bytes_).outcome, Outcome::failed);
  EXPECT_EQ(why().errc(), Errc::authentication) << why().message();
  EXPECT_NE(why().message().find("wants a client certificate"), std::string::npos)
      << why().message();
}

TEST_F(TlsWords, AnAlertIsHeardWhereTheHandshakeCouldNotBeSent) {
  const auto client = TlsWords::client();
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context{
      ::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free};
  ::SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  ASSERT_EQ(::SSL_CTX_use_certificate_file(context.get(), files()["server.pem"].c_str(),
                                           SSL_FILETYPE_PEM),
            1);
  ASSERT_EQ(
      ::SSL_CTX_use_PrivateKey_file(context.get(), files()["server.key"].c_str(), SSL_FILETYPE_PEM),
      1);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> server{::SSL_new(context.get()), ::SSL_free};
  ::SSL_set_fd(server.get(), pair_.server.descriptor());
  ASSERT_EQ(client->read_some(bytes_).outcome, Outcome::would_block);          // says hello
  ASSERT_EQ(::SSL_accept(server.get()), -1);                                   // answers
  static constexpr std::string_view alert{"\x15\x03\x03\x00\x02\x02\x28", 7};  // handshake_failure
  ASSERT_EQ(pair_.server.write_some(alert).bytes, alert.size());
  pair_.server = Socket{};
  EXPECT_EQ(client->read_some(bytes_).outcome, Outcome::failed);
  EXPECT_EQ(why().errc(), Errc::authentication) << why().message();
  EXPECT_NE(why().message().find("the server refuses the handshake"), std::string::npos)
      << why().message();
}

}  // namespace
}  // namespace sluice::net
