/// What operators do with waiting rooms.
#include "server/operate_calls.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

void set_rate(WaitingRoom& room, const Asked& asked) {
  room.set_rate(asked.number("rate"), room.status().get().interval).get();
}
void set_units(WaitingRoom& room, const Asked& asked) {
  room.set_units_left(asked.number("units")).get();
}
void pause(WaitingRoom& room, const Asked&) { room.pause().get(); }
void resume(WaitingRoom& room, const Asked&) { room.resume().get(); }
void close(WaitingRoom& room, const Asked&) { room.close().get(); }

}  // namespace

std::vector<OperateCall> room_calls(const QueueApi& queue) {
  struct Row {
    const char* name;
    const char* operation;
    const char* summary;
    std::vector<BodyMember> body;
    bool is_final;
    void (*change)(WaitingRoom&, const Asked&);
  };
  const Row rows[] = {
      {"rate", "set_room_rate", "How many are let in in an interval", {{"rate"}}, false, set_rate},
      {"units",
       "set_room_units",
       "What it is told is left, until the sale sells or gives back",
       {{"units"}},
       false,
       set_units},
      {"pause", "pause_room", "Lets nobody in until it is resumed", {}, false, pause},
      {"resume", "resume_room", "Lets visitors in again", {}, false, resume},
      {"close", "close_room", "Lets nobody come or in, for ever", {}, true, close}};
  std::vector<OperateCall> calls;
  for (const auto& row : rows)
    calls.push_back(
        {.method = "POST",
         .path = std::string{"/v1/operate/rooms/{sale}/"} + row.name,
         .operation = row.operation,
         .summary = row.summary,
         .body = row.body,
         .is_final = row.is_final,
         .problems = {&problems::no_queue},
         .asks_database = false,
         .serve = [&queue, change = row.change](Asked& asked, const BlockingThreads::Orders&) {
           const auto room = queue.room_of(asked.sale());
           if (!room) return http::problem(problems::no_queue);
           change(*room, asked);
           return http::Response{.status = 204};
         }});
  return calls;
}

}  // namespace sluice::server
