#include "support/certificates.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "support/process.hpp"

namespace sluice::test {
namespace {

constexpr std::string_view new_key =
    "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout";

}  // namespace

Certificates::Certificates() {
  shell(
      fmt::format("openssl req -x509 {} ca.key -days 60 -subj /CN=authority -out ca.pem", new_key));
  make("server", "DNS:localhost,IP:127.0.0.1,IP:::1");
  make("client", "DNS:client");
}

void Certificates::make(const std::string& name, const std::string& names, int days) {
  const auto [code, text] = shell(fmt::format(
      "openssl req {1} {0}.key.new -subj /CN={0} -out {0}.csr && "
      "echo subjectAltName={2} > {0}.ext && openssl x509 -req -in {0}.csr -CA ca.pem -CAkey ca.key "
      "-CAcreateserial -days {3} -extfile {0}.ext -out {0}.pem.new && "
      "mv {0}.key.new {0}.key && mv {0}.pem.new {0}.pem",
      name, new_key, names, days));
  if (code != 0) throw std::runtime_error{"no certificate: " + text};
}

std::pair<int, std::string> Certificates::shell(const std::string& line) {
  const auto output = folder_ / ("out" + std::to_string(++lines_));
  Process process{{"sh", "-c", line},
                  {.directory = folder_.path(), .environment = {}, .output = output}};
  const int code = process.wait();
  std::ifstream file{output, std::ios::binary};
  return {code, {std::istreambuf_iterator<char>{file}, {}}};
}

std::vector<std::string> Certificates::redis(std::uint16_t port, const std::string& auth_clients,
                                             const std::string& name) const {
  return {fmt::format("tls-port {}", port), "tls-cert-file " + (*this)[name + ".pem"],
          "tls-key-file " + (*this)[name + ".key"], "tls-ca-cert-file " + (*this)["ca.pem"],
          "tls-auth-clients " + auth_clients};
}

}  // namespace sluice::test
