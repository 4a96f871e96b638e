/// What OpenSSL says, in words that name the cause and what to do.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "sluice/clock.hpp"
#include "sluice/error.hpp"

namespace sluice::net {

/// Takes the errors of this thread; the first is the cause.
std::string take_reason();

/// Why a certificate of the peer will not do. Called by OpenSSL's verification, where the
/// certificate is at hand. `host`: what was dialled.
std::string words_for_certificate(X509_STORE_CTX* verification, const std::string& host);

/// Why this connection was ended. Takes the errors of this thread. `refused`: the words for the
/// peer's certificate, where that was not verified.
Error words_for_end(const SSL* ssl, const std::string& refused);

WallTime to_wall_time(const ASN1_TIME* time) noexcept;

}  // namespace sluice::net
