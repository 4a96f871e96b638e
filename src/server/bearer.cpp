#include "server/bearer.hpp"

#include "http/text.hpp"

namespace sluice::server {

Expected<std::string_view, http::Response> bearer_of(const http::Request& request,
                                                     const http::ProblemType& refusal) {
  constexpr std::string_view scheme = "Bearer ";
  if (request.count("Authorization") > 1)
    return Unexpected{refuse_credentials(refusal, "Authorization stands there more than once")};
  const auto field = request.field("Authorization");
  if (!field || field->size() <= scheme.size() ||
      !http::same_word(field->substr(0, scheme.size()), scheme))
    return Unexpected{
        refuse_credentials(refusal, "a token is needed: Authorization: Bearer TOKEN")};
  return http::trimmed(field->substr(scheme.size()));
}

http::Response refuse_credentials(const http::ProblemType& type, std::string_view detail) {
  auto response = http::problem(type, detail);
  if (type.status == 401) response.add("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sluice::server
