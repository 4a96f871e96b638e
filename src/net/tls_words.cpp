#include "net/tls_words.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <system_error>
#include <vector>

#include "base/instant.hpp"

namespace sluice::net {
namespace {

constexpr std::size_t most_shown = 100;
constexpr std::size_t most_names = 5;

/// What a stranger has sent, for a message of ours.
std::string shown(std::string text) {
  if (text.size() > most_shown) text.resize(most_shown);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string text_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(::ASN1_STRING_length(string))};
}

std::string name_text(const X509_NAME* name) {
  std::array<char, 256> text{};
  ::X509_NAME_oneline(name, text.data(), static_cast<int>(text.size()));
  return shown(text.data());
}

std::string address_text(const ASN1_OCTET_STRING* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ::ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ::ASN1_STRING_length(bytes) != 16) return "an address";
  ::inet_ntop(family, ::ASN1_STRING_get0_data(bytes), text.data(), text.size());
  return text.data();
}

/// "localhost, 127.0.0.1": for whom a certificate is.
std::string names_of(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&::GENERAL_NAMES_free)> all{
      static_cast<GENERAL_NAMES*>(
          ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      ::GENERAL_NAMES_free};
  std::vector<std::string> names;
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()) && names.size() <= most_names; ++i) {
    const auto* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (names.size() == most_names)
      names.emplace_back("...");
    else if (name->type == GEN_DNS)
      names.push_back(shown(text_of(name->d.dNSName)));
    else if (name->type == GEN_IPADD)
      names.push_back(address_text(name->d.iPAddress));
  }
  if (names.empty()) return name_text(::X509_get_subject_name(certificate));
  return fmt::format("{}", fmt::join(names, ", "));
}

struct Reason {
  int code;
  Errc errc;
  const char* words;
};

constexpr const char* refuses_ours = "the peer refuses our certificate";
constexpr const char* no_common_version =
    "the two sides have no version of TLS in common; the oldest that is taken is 1.2 unless set";

constexpr Reason reasons[] = {
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, Errc::authentication,
     "the server wants a client certificate: give one and its key (tls_certificate and tls_key in "
     "a URL, certificate and key in the proxy's file)"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, Errc::authentication,
     "the peer does not trust the authority of our certificate"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, Errc::authentication, refuses_ours},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, Errc::authentication, refuses_ours},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, Errc::authentication, refuses_ours},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, Errc::authentication, refuses_ours},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, Errc::authentication, refuses_ours},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, Errc::authentication, refuses_ours},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, Errc::authentication, refuses_ours},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, Errc::protocol, no_common_version},
    {SSL_R_UNSUPPORTED_PROTOCOL, Errc::protocol, no_common_version},
    {SSL_R_VERSION_TOO_LOW, Errc::protocol, no_common_version},
    {SSL_R_WRONG_VERSION_NUMBER, Errc::protocol, "the peer does not speak TLS"},
    {SSL_R_HTTP_REQUEST, Errc::protocol, "the peer does not speak TLS"},
};

/// Of TLS 1.2, where the server says no more than that it will not.
Error words_for_refusal(const SSL* ssl, const std::string& reason) {
  if (::SSL_is_server(ssl) != 0 || ::SSL_get_certificate(ssl) != nullptr)
    return {Errc::protocol, fmt::format("the peer refuses the handshake ({})", reason)};
  return {Errc::authentication,
          fmt::format("the server refuses the handshake; perhaps it wants a client certificate "
                      "({})",
                      reason)};
}

}  // namespace

std::string take_reason() {
  const auto code = ::ERR_get_error();
  ::ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
  return reason ? reason : "unknown reason";
}

WallTime to_wall_time(const ASN1_TIME* time) noexcept {
  std::tm calendar{};
  if (::ASN1_TIME_to_tm(time, &calendar) != 1) return WallTime::max();
  return WallTime{std::chrono::seconds{::timegm(&calendar)}};
}

std::string words_for_certificate(X509_STORE_CTX* verification, const std::string& host) {
  const int code = ::X509_STORE_CTX_get_error(verification);
  const auto why = [&](const std::string& words) {
    return fmt::format("{} ({})", words, ::X509_verify_cert_error_string(code));
  };
  const X509* const certificate = ::X509_STORE_CTX_get_current_cert(verification);
  if (!certificate) return why("the peer's certificate cannot be verified");
  const auto whose = name_text(::X509_get_subject_name(certificate));
  switch (code) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return why(
          fmt::format("the server's certificate is for {}, not for {}: dial such a name, or "
                      "give it (tls_server_name in a URL, server_name in the proxy's file)",
                      names_of(certificate), host));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return why(fmt::format("the certificate of {} has ended on {}: renew it", whose,
                             to_text(to_wall_time(::X509_get0_notAfter(certificate)))));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return why(
          fmt::format("the certificate of {} begins on {}: is the clock of this machine "
                      "right?",
                      whose, to_text(to_wall_time(::X509_get0_notBefore(certificate)))));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return why(
          fmt::format("the peer's certificate comes from {}, which is not trusted: give the "
                      "file of that authority (tls_ca in a URL, ca in the proxy's file)",
                      name_text(::X509_get_issuer_name(certificate))));
    default: return why(fmt::format("the certificate of {} cannot be verified", whose));
  }
}

Error words_for_end(const SSL* ssl, const std::string& refused) {
  const auto first = ::ERR_peek_error();
  if (first == 0) return {Errc::connection, "the peer ended the connection in the TLS handshake"};
  const int code = ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0;
  const auto reason = take_reason();
  if (code == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return {Errc::authentication, refused.empty() ? reason : refused};
  if (code == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) return words_for_refusal(ssl, reason);
  for (const auto& known : reasons)
    if (known.code == code) return {known.errc, fmt::format("{} ({})", known.words, reason)};
  return {Errc::protocol, fmt::format("TLS failed: {}", reason)};
}

}  // namespace sluice::net
