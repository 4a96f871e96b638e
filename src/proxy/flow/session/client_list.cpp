// CLIENT LIST: the proxy's clients of the pool that have logged in as the same user, of all
// workers, each in a line as Redis writes it. Libraries of job queues look there for their workers.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/integer.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::size_t most_listed = 10'000;

/// TYPE and ID of CLIENT LIST.
struct Filter {
  enum class Kind : std::uint8_t { all, normal, pubsub, none };
  Kind kind = Kind::all;
  bool by_id = false;
  std::vector<std::uint64_t> ids;
  std::string error;

  bool takes(const Client& client, bool is_subscribed) const {
    if (by_id && std::ranges::find(ids, client.id()) == ids.end()) return false;
    return kind == Kind::all || kind == (is_subscribed ? Kind::pubsub : Kind::normal);
  }
};

Filter read_filter(Words words) {
  Filter filter;
  if (words.size() == 2) return filter;
  if (resp::is_word(words[2], "type") && words.size() == 4) {
    const auto is = [&](std::string_view kind) { return resp::is_word(words[3], kind); };
    if (is("normal"))
      filter.kind = Filter::Kind::normal;
    else if (is("pubsub"))
      filter.kind = Filter::Kind::pubsub;
    else if (is("master") || is("replica") || is("slave"))
      filter.kind = Filter::Kind::none;
    else
      filter.error = fmt::format("ERR Unknown client type '{}'", words[3].substr(0, 128));
  } else if (resp::is_word(words[2], "id") && words.size() > 3) {
    filter.by_id = true;
    for (const auto word : words.subspan(3)) {
      const auto id = parse_integer<std::uint64_t>(word);
      if (!id) filter.error = "ERR Invalid client ID";
      filter.ids.push_back(id.value_or(0));
    }
  } else {
    filter.error = "ERR syntax error";
  }
  return filter;
}

/// A request of the asker's client, on its way back to the asker. It is deleted when the asker is
/// gone, and its client before.
struct Returning {
  explicit Returning(Request* which) : request(which) {}
  ~Returning() { delete request; }
  Returning(const Returning&) = delete;
  Returning& operator=(const Returning&) = delete;

  void answer(Pool& asker, std::string_view reply) {
    Request& answered = *std::exchange(request, nullptr);
    if (answered.receiver)
      answered.receiver->replied(answered, reply);
    else
      asker.requests().drop(answered);
  }

  Request* request;
};

/// What the parts of the pool have told so far. The last one answers.
struct Census {
  /// With a request that has no answer: a part has ended and does not tell.
  ~Census() {
    if (!request) return;
    auto back = std::make_shared<Returning>(request);
    parts->post_to(asker, [back](Pool* there) {
      if (there) back->answer(*there, "-ERR the proxy is ending\r\n");
    });
  }

  std::shared_ptr<PoolParts> parts;
  const Pool* asker = nullptr;  // whose client has asked
  std::string user;
  Filter filter;
  int resp = 2;
  Request* request = nullptr;  // in the client's queue; touched in the asker's thread alone

  std::mutex mutex;
  std::size_t missing = 0;
  std::vector<std::pair<std::uint64_t, std::string>> lines;  // by id
};

void give(Census& census, Pool& asker) {
  std::ranges::sort(census.lines);
  std::string text, reply;
  for (const auto& [id, line] : census.lines) text += line;
  resp::ReplyWriter{reply, census.resp}.verbatim(text);
  Returning{std::exchange(census.request, nullptr)}.answer(asker, reply);
}

void collect(const std::shared_ptr<Census>& census, Pool* part) {
  {
    const std::lock_guard lock{census->mutex};
    if (part)
      part->clients().for_each([&](const Client& client) {
        if (census->lines.size() < most_listed && client.user() == census->user &&
            census->filter.takes(client, client.is_subscribed()))
          census->lines.emplace_back(client.id(), client.line());
      });
    if (--census->missing != 0) return;
  }
  census->parts->post_to(census->asker, [census](Pool* asker) {
    if (asker) give(*census, *asker);
  });
}

}  // namespace

void ClientSession::list(Words words) {
  auto filter = read_filter(words);
  if (!filter.error.empty()) {
    std::string reply;
    resp::ReplyWriter{reply}.error(filter.error);
    return answer(reply);
  }
  const auto census = std::make_shared<Census>();
  census->parts = pool().shared().parts;
  census->asker = &pool();
  census->user = user();
  census->filter = std::move(filter);
  census->resp = client_.mode().resp;
  census->request = &client_.enqueue({});
  const std::lock_guard lock{census->mutex};  // so that nobody counts down before it is counted
  census->missing = census->parts->post_to_all([census](Pool* part) { collect(census, part); });
}

}  // namespace sluice::proxy::flow
