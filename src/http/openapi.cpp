#include "http/openapi.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "http/response.hpp"
#include "http/text.hpp"

namespace sluice::http {
namespace {

Json content(std::string_view media, const std::string& schema) {
  return Json::object({{media, Json::object({{"schema", Json::raw(schema)}})}});
}

/// Of an answer in each of its media types.
Json content_of(const Route& route, int status) {
  auto all = Json::object();
  for (const auto& answer : route.answers)
    if (answer.status == status)
      all.add(answer.media, Json::object({{"schema", Json::raw(answer.schema)}}));
  return all;
}

Json parameters_of(const Route& route) {
  auto parameters = Json::array();
  for (std::size_t from = 0; (from = route.path.find('{', from)) != std::string::npos;) {
    const auto end = route.path.find('}', from);
    parameters.add(Json::object({{"name", route.path.substr(from + 1, end - from - 1)},
                                 {"in", "path"},
                                 {"required", true},
                                 {"schema", Json::raw(R"({"type":"string"})")}}));
    from = end;
  }
  for (const auto& parameter : route.parameters)
    parameters.add(Json::object({{"name", parameter.name},
                                 {"in", parameter.in},
                                 {"description", parameter.description},
                                 {"required", parameter.required},
                                 {"schema", Json::raw(parameter.schema)}}));
  return parameters;
}

/// What routes are refused by. Most have some in common, which stand in the document once.
class Refusals {
 public:
  /// Refers to the one of this text, which is shown in `media`, too, unless that is empty.
  Json refer(int status, const std::string& text, const std::string& media) {
    auto& of_status = texts_[status];
    const auto known = std::ranges::find(of_status, std::pair{text, media});
    const auto at = static_cast<std::size_t>(known - of_status.begin());
    if (known == of_status.end()) of_status.emplace_back(text, media);
    return Json::object({{"$ref", "#/components/responses/" + name_of(status, at)}});
  }

  Json all() const {
    auto responses = Json::object();
    for (const auto& [status, texts] : texts_)
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto& [text, media] = texts[i];
        auto shown = content(problem_media, problem_reference);
        if (!media.empty())
          shown.add(media, Json::object({{"schema", Json::object({{"type", "string"}})}}));
        responses.add(name_of(status, i),
                      Json::object({{"description", text}, {"content", shown}}));
      }
    return responses;
  }

 private:
  static constexpr auto problem_reference = R"({"$ref":"#/components/schemas/Problem"})";
  static std::string name_of(int status, std::size_t at) {
    return std::to_string(status) + '-' + std::to_string(at + 1);
  }

  std::map<int, std::vector<std::pair<std::string, std::string>>> texts_;
};

/// Problems of one status are one response, which names them all.
Json responses_of(const Route& route, Refusals& refusals) {
  auto responses = Json::object();
  for (const auto& answer : route.answers) {
    const auto first = std::ranges::find(route.answers, answer.status, &Answer::status);
    if (&*first != &answer) continue;
    auto response = Json::object({{"description", answer.description}});
    if (!answer.schema.empty()) response.add("content", content_of(route, answer.status));
    responses.add(std::to_string(answer.status), response);
  }
  std::map<int, std::string> problems;
  const auto add = [&](const ProblemType& problem) {
    auto& text = problems[problem.status];
    if (!text.empty()) text += "; ";
    (text += type_of(problem)) += ": ";
    text += problem.title;
  };
  std::ranges::for_each(route.problems, [&](const auto* problem) { add(*problem); });
  std::ranges::for_each(own_problems, [&](const auto* problem) { add(*problem); });
  for (const auto& [status, text] : problems) {
    if (std::ranges::any_of(route.answers, [&](const auto& row) { return row.status == status; }))
      continue;  // said by the route itself
    responses.add(std::to_string(status), refusals.refer(status, text, route.problems_media));
  }
  return responses;
}

/// One of them is enough; none: it is for everybody.
Json security_of(std::string_view credentials) {
  auto alternatives = Json::array();
  while (!credentials.empty()) {
    const auto name = credentials.substr(0, credentials.find(' '));
    credentials.remove_prefix(std::min(credentials.size(), name.size() + 1));
    alternatives.add(Json::object({{name, Json::array()}}));
  }
  return alternatives;
}

Json operation_of(const Route& route, Refusals& refusals) {
  auto operation = Json::object({{"operationId", route.operation},
                                 {"summary", route.summary},
                                 {"parameters", parameters_of(route)}});
  if (!route.request.empty())
    operation.add("requestBody", Json::object({{"required", true},
                                               {"content", content(json_media, route.request)}}));
  operation.add("responses", responses_of(route, refusals));
  operation.add("security", security_of(route.credentials));
  return operation;
}

constexpr std::string_view problem_schema = R"({
"type":"object",
"required":["type","title","status"],
"properties":{
"type":{"type":"string","format":"uri"},
"title":{"type":"string"},
"status":{"type":"integer"},
"detail":{"type":"string"}},
"additionalProperties":true})";

Json named(const std::vector<std::pair<std::string, std::string>>& rows) {
  auto object = Json::object();
  for (const auto& [name, json] : rows) object.add(name, Json::raw(json));
  return object;
}

}  // namespace

std::string openapi(const Routes& routes, const ApiDocument& document) {
  std::map<std::string_view, Json> paths;
  Refusals refusals;
  for (const auto& route : routes.all()) {
    std::string method;
    std::ranges::transform(route.method, std::back_inserter(method), lower);
    paths.try_emplace(route.path, Json::object())
        .first->second.add(method, operation_of(route, refusals));
  }
  auto all = Json::object();
  for (const auto& [path, operations] : paths) all.add(path, operations);
  auto schemas = named(document.schemas);
  schemas.add("Problem", Json::raw(std::string{problem_schema}));
  return Json::object(
             {{"openapi", "3.1.0"},
              {"info", Json::object({{"title", document.title}, {"version", document.version}})},
              {"servers", Json::array({Json::object({{"url", "/"}})})},
              {"paths", all},
              {"components", Json::object({{"schemas", schemas},
                                           {"responses", refusals.all()},
                                           {"securitySchemes", named(document.credentials)}})}})
      .text();
}

}  // namespace sluice::http
