/// Filters that will take the place of another, and all bits of one.
#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "bloom/shared/shared.lua.hpp"
#include "bloom/shared/shared_filter.hpp"
#include "store/reply_error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t piece_bytes = 1 << 20;
constexpr std::size_t pieces_together = 4;

}  // namespace

Task<std::shared_ptr<SharedFilter>> SharedFilter::begin(Definition made,
                                                        std::vector<std::string> terms,
                                                        std::chrono::milliseconds lease,
                                                        bool both) {
  const auto self = shared_from_this();
  const auto next = std::make_shared<SharedFilter>(*this, random_hex_128(), lease, both);
  Call call{scripts::bloom_shared_begin};
  call.key(names_.config).key(next->names_.config).key(names_.bits);
  for (auto& link : next->names_.links(made.links.size())) call.key(std::move(link));
  add_fields(call, made, terms);
  call.arg(next->id_).arg(static_cast<std::uint64_t>(lease.count())).arg(both ? "1" : "0");
  const Value reply = co_await call.run(store_, false);
  co_return reply.as_integer() > 0 ? next : nullptr;
}

Task<void> SharedFilter::finish(std::shared_ptr<SharedFilter> filter) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition mine = co_await read();
    const Definition old = co_await filter->read();
    if (old.id == id_) co_return;  // an earlier call, whose reply was lost
    // A filter that another program has made meanwhile does not know of the rebuild, and so its
    // keys are not in it.
    const bool is_another = both_ && old.exists() && old.next != id_;
    if (mine.id != id_ || is_another) throw closed();
    const auto places = filter->names_.links(std::max(mine.links.size(), old.links.size()));
    Call call{scripts::bloom_shared_finish};
    call.key(filter->names_.config).key(names_.config);
    for (const auto& place : places) call.key(place);
    for (auto& link : names_.links(mine.links.size())) call.key(std::move(link));
    call.known(old).arg(id_).arg(mine.chain).arg(places.size()).arg(filter->names_.channel);
    const Value reply = co_await call.run(store_, true);
    if (reply.is_aggregate()) continue;
    if (reply.as_integer() < 0) throw closed();
    // 0: given up; or a chain that grew, or an earlier copy of this call: look again.
    if (reply.as_integer() == 1) co_return;
  }
  throw closed();
}

Task<void> SharedFilter::give_up(std::shared_ptr<SharedFilter> filter) {
  const auto self = shared_from_this();
  const Definition mine = co_await read();
  Call call{scripts::bloom_shared_give_up};
  call.key(filter->names_.config).key(names_.config);
  for (auto& link : names_.links(std::max<std::size_t>(mine.links.size(), 1)))
    call.key(std::move(link));
  call.arg(id_).arg("0");
  co_await call.run(store_, true);
}

Task<void> SharedFilter::fill(std::size_t link, std::uint64_t offset, std::string bytes) {
  const auto self = shared_from_this();
  const Definition known = co_await definition();
  Call call{scripts::bloom_shared_fill};
  call.key(names_.config).key(names_.link(link));
  call.known(known).arg(offset).arg(bytes).arg(static_cast<std::uint64_t>(lease_.count()));
  const Value reply = co_await call.run(store_, true);
  if (reply.is_aggregate()) throw closed();
}

Task<Definition> SharedFilter::download(std::function<Sink(const Definition&)> begin) {
  const auto self = shared_from_this();
  for (int change = 0; change < most_changes; ++change) {
    const Definition before = co_await read();
    if (!before.exists()) throw closed();
    const Sink sink = begin(before);
    for (std::size_t link = 0; link < before.links.size(); ++link) {
      const std::string name = names_.link(link);
      const std::uint64_t bytes = (before.links[link].bits + 7) / 8;
      bool is_at_end = false;
      for (std::uint64_t offset = 0; offset < bytes && !is_at_end;) {
        Batch batch;
        for (std::size_t i = 0; i < pieces_together && offset + i * piece_bytes < bytes; ++i) {
          const std::uint64_t first = offset + i * piece_bytes;
          const std::string from = fmt::to_string(first);
          const std::string to = fmt::to_string(std::min(first + piece_bytes, bytes) - 1);
          batch.add({"GETRANGE", name, from, to});
        }
        const std::vector<Value> pieces = co_await store_.run(std::move(batch));
        for (const Value& piece : pieces) {
          if (piece.is_error()) {
            const std::string_view command[] = {"GETRANGE", name};
            throw error_of_command(piece.as_text(), Words{command});
          }
          const std::string& text = piece.as_text();
          if (offset == 0 && text.empty()) co_await need_links(before);
          if (!text.empty()) sink(link, offset, text);
          offset += piece_bytes;
          is_at_end |= text.size() < piece_bytes;
        }
      }
    }
    const Definition after = co_await read();
    if (after == before) co_return after;
  }
  throw changes_always(names_);
}

}  // namespace sluice::bloom
