// A stream in the log: its entries, what it counts, its groups, and what each consumer has pending.
#include "engine/core/object.hpp"
#include "engine/embedded/snapshot.hpp"
#include "engine/log/record.hpp"
#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

class StreamWriter {
 public:
  StreamWriter(std::string& out, std::string_view key) : out_(out), key_(key) {}

  void entries(const Stream& stream) {
    std::vector<std::string_view> words;
    stream.visit({}, StreamId::max(), [&](const Stream::Entry& entry) {
      const StreamIdText id{entry.id()};
      words.assign({"XADD", key_, id.view()});
      entry.visit_fields([&](std::string_view name, std::string_view value) {
        words.push_back(name);
        words.push_back(value);
      });
      append_record(out_, words);
      return true;
    });
    // One without entries is made by adding one that is trimmed away at once.
    if (stream.size() == 0) append_record(out_, {"XADD", key_, "MAXLEN", "0", "0-1", "x", "y"});
  }

  void counts(const Stream& stream) {
    append_record(out_, {"XSETID", key_, StreamIdText{stream.last_id}, "ENTRIESADDED",
                         std::to_string(stream.entries_added), "MAXDELETEDID",
                         StreamIdText{stream.max_deleted_id}});
  }

  void group(std::string_view name, const StreamGroup& group) {
    append_record(out_, {"XGROUP", "CREATE", key_, name, StreamIdText{group.last_id}, "ENTRIESREAD",
                         IntegerText{group.entries_read}});
    for (const auto& [consumer, state] : group.consumers())
      append_record(out_, {"XGROUP", "CREATECONSUMER", key_, name, consumer});
    for (const auto& [id, pending] : group.pending())
      append_record(out_, {"XCLAIM", key_, name, pending.consumer->name, "0", StreamIdText{id},
                           "TIME", IntegerText{pending.delivered_ms}, "RETRYCOUNT",
                           std::to_string(pending.deliveries), "JUSTID", "FORCE"});
  }

 private:
  std::string& out_;
  std::string_view key_;
};

}  // namespace

void append_stream(std::string& out, std::string_view key, const Stream& stream) {
  StreamWriter writer{out, key};
  writer.entries(stream);
  writer.counts(stream);
  for (const auto& [name, group] : stream.groups) writer.group(name, group);
}

}  // namespace sluice::engine
