#include "server/http_client.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "net/endpoint.hpp"
#include "server/public_address.hpp"
#include "sluice/error.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_url = 2000;

/// Once in a process, before its first thread asks.
void begin_curl() {
  static const bool begun = [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      throw Error{Errc::out_of_space, "libcurl cannot begin"};
    return true;
  }();
  static_cast<void>(begun);
}

struct FreeFields {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using FieldList = std::unique_ptr<curl_slist, FreeFields>;

void add_line(FieldList& list, const std::string& line) {
  curl_slist* const longer = curl_slist_append(list.get(), line.c_str());
  if (!longer) throw std::bad_alloc{};
  list.release();
  list.reset(longer);
}

struct FreeUrl {
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using ParsedUrl = std::unique_ptr<CURLU, FreeUrl>;

ParsedUrl parse_url(std::string_view text) {
  begin_curl();
  ParsedUrl url{curl_url()};
  if (!url) throw std::bad_alloc{};
  if (curl_url_set(url.get(), CURLUPART_URL, std::string{text}.c_str(), 0) != CURLUE_OK) return {};
  return url;
}

/// Empty: it has none.
std::string part(const ParsedUrl& url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, 0) != CURLUE_OK) return {};
  std::string copy{text};
  curl_free(text);
  return copy;
}

/// Without the brackets of an IPv6 address.
std::string host_of(const ParsedUrl& url) {
  auto host = part(url, CURLUPART_HOST);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

Errc kind_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return Errc::timeout;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE: return Errc::authentication;
    case CURLE_OUT_OF_MEMORY: return Errc::out_of_space;
    default: return Errc::connection;
  }
}

}  // namespace

/// One request, and what came of it.
struct HttpClient::Call {
  const HttpClientOptions& options;
  const std::atomic<bool>& is_stopped;
  const std::string& url;
  std::optional<std::string_view> body;  // empty: GET
  FieldList fields = {};

  HttpAnswer answer = {};
  std::size_t head_size = 0;
  std::string refused = {};  // the address that was not connected to
  std::optional<SteadyTime> stopped_at = {};
  bool was_stopped = false;

  // As libcurl calls them.
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static std::size_t take_head(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* self);
  static int go_on(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  [[noreturn]] void fail(CURLcode code, const char* detail, bool was_sent) const;
};

curl_socket_t HttpClient::Call::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& call = *static_cast<Call*>(self);
  if (!call.options.allows_private && !is_public(&address->addr)) {
    call.refused = text_of(&address->addr);
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t HttpClient::Call::take_head(char*, std::size_t size, std::size_t count, void* self) {
  auto& call = *static_cast<Call*>(self);
  call.head_size += size * count;
  return call.head_size <= call.options.head ? size * count : 0;
}

std::size_t HttpClient::Call::take_body(char* bytes, std::size_t size, std::size_t count,
                                        void* self) {
  auto& call = *static_cast<Call*>(self);
  auto& body = call.answer.body;
  const auto taken = std::min(size * count, call.options.body - body.size());
  body.append(bytes, taken);
  call.answer.is_cut = taken < size * count;
  return taken;  // fewer than came: libcurl reads no more
}

/// Asked at least once a second. Not 0: the request is broken off.
int HttpClient::Call::go_on(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& call = *static_cast<Call*>(self);
  if (!call.is_stopped.load(std::memory_order_relaxed)) return 0;
  const auto now = system_clock().steady();
  if (!call.stopped_at) call.stopped_at = now;
  call.was_stopped = now - *call.stopped_at >= call.options.after_stop;
  return call.was_stopped ? 1 : 0;
}

void HttpClient::Call::fail(CURLcode code, const char* detail, bool was_sent) const {
  const auto effect = was_sent ? Effect::unknown : Effect::none;
  const auto where = origin_of(url);
  if (was_stopped) throw Error{Errc::closed, where + ": this process stops", effect};
  if (!refused.empty())
    throw Error{Errc::connection, fmt::format("{}: {} is no public address", where, refused),
                effect};
  if (head_size > options.head)
    throw Error{Errc::connection,
                fmt::format("{}: its answer has more than {} bytes of fields", where, options.head),
                effect};
  throw Error{kind_of(code),
              fmt::format("{}: {}", where, *detail ? detail : curl_easy_strerror(code)), effect};
}

void HttpClient::Close::operator()(void* handle) const noexcept { curl_easy_cleanup(handle); }

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {
  begin_curl();
  handle_.reset(curl_easy_init());
  if (!handle_) throw std::bad_alloc{};
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::post(const std::string& url, const HttpFields& fields,
                            std::string_view body) {
  Call call{.options = options_, .is_stopped = is_stopped_, .url = url, .body = body};
  for (const auto& [name, value] : fields)
    add_line(call.fields, fmt::format("{}: {}", name, value));
  return ask(call);
}

HttpAnswer HttpClient::get(const std::string& url, const HttpFields& fields) {
  Call call{.options = options_, .is_stopped = is_stopped_, .url = url, .body = {}};
  for (const auto& [name, value] : fields)
    add_line(call.fields, fmt::format("{}: {}", name, value));
  return ask(call);
}

HttpAnswer HttpClient::ask(Call& call) {
  check_http_url(call.url);
  if (is_stopped_.load(std::memory_order_relaxed))
    throw Error{Errc::closed, origin_of(call.url) + ": this process stops"};
  CURL* const handle = handle_.get();
  curl_easy_reset(handle);  // what was set for the last request; connections stay
  char detail[CURL_ERROR_SIZE] = {};
  FieldList resolve;
  const auto set = [handle](CURLoption option, auto value) {
    if (curl_easy_setopt(handle, option, value) != CURLE_OK)
      throw Error{Errc::bad_argument, "libcurl does not know an option: it is too old"};
  };
  set(CURLOPT_ERRORBUFFER, detail);
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // else who asks a name server that is dead waits for it, not for us
  set(CURLOPT_USERAGENT, "sluice");
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.whole.count()));
  set(CURLOPT_OPENSOCKETFUNCTION, &Call::open_socket);
  set(CURLOPT_OPENSOCKETDATA, &call);
  set(CURLOPT_HEADERFUNCTION, &Call::take_head);
  set(CURLOPT_HEADERDATA, &call);
  set(CURLOPT_WRITEFUNCTION, &Call::take_body);
  set(CURLOPT_WRITEDATA, &call);
  set(CURLOPT_XFERINFOFUNCTION, &Call::go_on);
  set(CURLOPT_XFERINFODATA, &call);
  set(CURLOPT_NOPROGRESS, 0L);
  if (!options_.authority.empty()) set(CURLOPT_CAINFO, options_.authority.c_str());
  for (const auto& line : options_.resolve) add_line(resolve, line);
  if (resolve) set(CURLOPT_RESOLVE, resolve.get());
  if (call.body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body->size()));
    set(CURLOPT_POSTFIELDS, call.body->empty() ? "" : call.body->data());
    add_line(call.fields, "Expect:");  // no 100-continue
  }
  if (call.fields) set(CURLOPT_HTTPHEADER, call.fields.get());

  const auto code = curl_easy_perform(handle);
  if (code != CURLE_OK && !call.answer.is_cut) {
    long sent = 0;
    curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &sent);
    call.fail(code, detail, sent > 0);
  }
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  call.answer.status = static_cast<int>(status);
  curl_off_t wait = 0;
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wait);
  call.answer.retry_after = std::chrono::seconds{std::max<curl_off_t>(wait, 0)};
  return std::move(call.answer);
}

void check_http_url(std::string_view url) {
  const auto refuse = [](std::string_view why) {
    throw Error{Errc::bad_argument,
                fmt::format("it is no URL like https://shop.example/messages: {}", why)};
  };
  if (url.size() > longest_url) refuse("it has more than 2000 bytes");
  if (std::ranges::any_of(url,
                          [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; }))
    refuse("it has blanks or control characters");
  const auto parsed = parse_url(url);
  if (!parsed) refuse("it cannot be read");
  const auto scheme = part(parsed, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") refuse("http and https are spoken");
  if (!part(parsed, CURLUPART_USER).empty() || !part(parsed, CURLUPART_PASSWORD).empty())
    refuse("messages are signed; a user or password in it would be sent to whoever is there");
  if (!part(parsed, CURLUPART_FRAGMENT).empty()) refuse("a fragment is never sent");
}

std::string origin_of(const std::string& url) {
  const auto parsed = parse_url(url);
  if (!parsed) return "a URL that cannot be read";
  const auto port = part(parsed, CURLUPART_PORT);
  return fmt::format("{}://{}{}{}", part(parsed, CURLUPART_SCHEME), part(parsed, CURLUPART_HOST),
                     port.empty() ? "" : ":", port);
}

bool is_private_by_its_text(const std::string& url) {
  const auto parsed = parse_url(url);
  if (!parsed) return false;
  const auto host = host_of(parsed);
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  if (!net::is_numeric(host)) return false;
  return !is_public(net::resolve({.host = host, .port = 1, .unix_path = {}}).front().get());
}

}  // namespace sluice::server
