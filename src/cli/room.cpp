/// `sluice room create|status|rate|units|pause|resume|close|verify|remove NAME`: waiting rooms, as
/// their owner sees them. Visitors come by the program that sells.
#include <fmt/format.h>

#include <limits>

#include "base/instant.hpp"
#include "base/random.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;

struct RoomArgs {
  WaitingRoomDefinition definition;
  std::int64_t rate = 0;    ///< of a change; 0: not given
  std::int64_t inside = 0;  ///< the same
  std::string units;
  std::vector<std::string> places;
};

/// The owner's verbs sign no tickets and read none, so they need no key of the service.
TokenKeys no_keys() { return TokenKeys{{{"unused", random_hex_128()}}}; }

WaitingRoom load_room(Store& store, const std::string& name) {
  auto room = WaitingRoom::load(store, no_keys(), name).get();
  if (!room)
    throw Error{Errc::bad_argument,
                fmt::format("{} knows no waiting room '{}': make it with 'sluice room create {}'",
                            store.describe(), name, name)};
  return std::move(*room);
}

std::string rate_text(std::int64_t rate, milliseconds interval) {
  return fmt::format("{} in {} ms", rate, interval.count());
}

Json room_json(const WaitingRoomStatus& status) {
  Json json = Json::object({{"ok", true},
                            {"open", status.open},
                            {"paused", status.paused},
                            {"closed", status.closed},
                            {"rate", status.rate},
                            {"interval_ms", status.interval.count()},
                            {"inside_limit", status.inside_limit},
                            {"hold_ms", status.hold.count()},
                            {"stay_ms", status.stay ? Json{status.stay->count()} : Json{}},
                            {"enrolled", status.enrolled},
                            {"waiting", status.waiting},
                            {"called", status.called},
                            {"inside", status.inside},
                            {"let_in", status.let_in},
                            {"gone", status.gone}});
  if (status.opens_at) json.add("opens_at", to_text(*status.opens_at));
  if (status.units_left) json.add("units_left", *status.units_left);
  return json;
}

std::string text_of(const std::string& name, const WaitingRoomStatus& status) {
  std::string text = fmt::format("waiting room '{}' is {}", name,
                                 status.closed   ? "closed"
                                 : !status.open  ? "not open yet"
                                 : status.paused ? "paused"
                                                 : "open");
  if (status.opens_at && !status.open)
    text += fmt::format(", and opens at {}", to_text(*status.opens_at));
  text += fmt::format(
      "\n  lets in    {}, {} inside at a time, a silent one for {} ms, each {}\n"
      "  enrolled   {}\n  waiting    {}\n  called     {}\n  inside     {}\n  let in     {}\n"
      "  gone       {}",
      rate_text(status.rate, status.interval), status.inside_limit, status.hold.count(),
      status.stay ? fmt::format("for {} ms at most", status.stay->count()) : "without end",
      status.enrolled, status.waiting, status.called, status.inside, status.let_in, status.gone);
  if (status.units_left) text += fmt::format("\n  units left {}", *status.units_left);
  return text;
}

int show_status(const Globals& globals, const std::string& name, WaitingRoom& room) {
  const auto status = room.status().get();
  print(globals.json, room_json(status), text_of(name, status));
  return exit_ok;
}

int create(const Globals& globals, const RoomArgs& args) {
  const auto store = open_store(globals);
  const auto& definition = args.definition;
  auto room = WaitingRoom::create(*store, no_keys(), definition).get();
  const auto draw = room.draw().get();
  warn_if_in_memory(globals, "the waiting room");
  auto text = fmt::format("waiting room '{}' lets in {}, {} inside at a time", definition.name,
                          rate_text(definition.rate, definition.interval), definition.inside);
  if (definition.opens_at)
    text += fmt::format("\nthe seed of its draw has SHA-256 {}: publish that", draw.commitment);
  print(globals.json,
        Json::object({{"ok", true}, {"room", definition.name}, {"commitment", draw.commitment}}),
        text);
  return exit_ok;
}

int status(const Globals& globals, const RoomArgs& args) {
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  return show_status(globals, args.definition.name, room);
}

int change_rate(const Globals& globals, const RoomArgs& args) {
  if (args.rate == 0 && args.inside == 0)
    throw Error{Errc::bad_argument, "say what changes: --rate N, --inside N"};
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  if (args.rate > 0) room.set_rate(args.rate, args.definition.interval).get();
  if (args.inside > 0) room.set_inside(args.inside).get();
  return show_status(globals, args.definition.name, room);
}

int tell_units(const Globals& globals, const RoomArgs& args) {
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  std::optional<std::int64_t> units;
  if (args.units != "unknown") {
    const auto read = [&units](std::int64_t value) { units = value; };
    into_integer(read, "", 0, std::numeric_limits<std::int64_t>::max()).set(args.units);
  }
  room.set_units_left(units).get();
  return show_status(globals, args.definition.name, room);
}

/// Of the verbs that need no more than a name.
template <class Verb>
int change(const Globals& globals, const RoomArgs& args, Verb verb) {
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  (room.*verb)().get();
  return show_status(globals, args.definition.name, room);
}

int pause(const Globals& globals, const RoomArgs& args) {
  return change(globals, args, &WaitingRoom::pause);
}
int resume(const Globals& globals, const RoomArgs& args) {
  return change(globals, args, &WaitingRoom::resume);
}
int close(const Globals& globals, const RoomArgs& args) {
  return change(globals, args, &WaitingRoom::close);
}

int remove(const Globals& globals, const RoomArgs& args) {
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  const bool removed = room.remove().get();
  print(globals.json, Json::object({{"ok", true}, {"removed", removed}}),
        fmt::format("waiting room '{}' is removed", args.definition.name));
  return exit_ok;
}

int verify(const Globals& globals, const RoomArgs& args) {
  const auto store = open_store(globals);
  auto room = load_room(*store, args.definition.name);
  const auto audit = room.verify().get();
  const auto& draw = audit.draw;
  Json positions = Json::object();
  std::string text =
      draw.seed.empty()
          ? fmt::format("nothing is drawn before the opening; the seed has SHA-256 {}",
                        draw.commitment)
          : fmt::format("seed {}\n  SHA-256 {}: {}\n  drawn {}, compared {}, wrong {}", draw.seed,
                        draw.commitment, draw.keeps_promise() ? "as promised" : "NOT the seed's",
                        draw.places, audit.checked, audit.wrong);
  for (const auto& word : args.places) {
    std::int64_t place = 0;
    const auto read = [&place](std::int64_t value) { place = value; };
    into_integer(read, "", 1, std::numeric_limits<std::int64_t>::max()).set(word);
    const auto position = draw.position_of(place);
    positions.add(word, position);
    text += fmt::format("\n  place {} has position {}", place, position);
  }
  print(globals.json,
        Json::object({{"ok", audit.is_right()},
                      {"commitment", draw.commitment},
                      {"seed", draw.seed},
                      {"places", draw.places},
                      {"checked", audit.checked},
                      {"wrong", audit.wrong},
                      {"positions", positions}}),
        text);
  return audit.is_right() ? exit_ok : exit_check_failed;
}

std::vector<Option> create_options(RoomArgs& args) {
  auto& definition = args.definition;
  return {{"--rate", "N", "How many are let in in any interval",
           into(definition.rate, 1, WaitingRoom::most_rate)},
          {"--interval", "TIME", "The interval of the rate", into(definition.interval)},
          {"--inside", "N", "How many are inside at a time",
           into(definition.inside, 1, WaitingRoom::most_inside)},
          {"--hold", "TIME", "Who is not heard of for so long has left", into(definition.hold)},
          {"--stay", "TIME", "How long each is inside at most", into(definition.stay)},
          {"--opens", "INSTANT",
           "Until then all who come are enrolled, and at that moment drawn; without it first come, "
           "first served",
           into_instant(definition.opens_at)}};
}

std::vector<Option> rate_options(RoomArgs& args) {
  return {{"--rate", "N", "How many are let in in any interval",
           into(args.rate, 1, WaitingRoom::most_rate)},
          {"--interval", "TIME", "The interval of the rate", into(args.definition.interval)},
          {"--inside", "N", "How many are inside at a time; nobody is sent out",
           into(args.inside, 1, WaitingRoom::most_inside)}};
}

}  // namespace

Command room_command(const Globals& globals) {
  const auto args = std::make_shared<RoomArgs>();
  const auto verb = [&](std::string name, std::string summary, std::vector<Option> options,
                        int (*run)(const Globals&, const RoomArgs&),
                        std::vector<Argument> more = {}) {
    std::vector<Argument> arguments{{"NAME", "Name of the room", into(args->definition.name)}};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Command{.name = std::move(name),
                   .summary = std::move(summary),
                   .arguments = std::move(arguments),
                   .options = std::move(options),
                   .action = [&globals, args, run] { return run(globals, *args); }};
  };
  return {
      .name = "room",
      .summary = "Make, steer and verify waiting rooms",
      .commands =
          {verb("create", "Make a waiting room, and show what its draw promises",
                create_options(*args), create),
           verb("status", "How many wait and are inside, and how it lets them in", {}, status),
           verb("rate", "Change how fast it lets in, or how many are inside", rate_options(*args),
                change_rate),
           verb("units", "Tell those who wait how much is left to sell; with 0 nobody is let in",
                {}, tell_units, {{"N", "Units left, or 'unknown'", into(args->units)}}),
           verb("pause", "Let nobody in for a while", {}, pause),
           verb("resume", "Go on", {}, resume),
           verb("close", "Nobody comes or is let in any more", {}, close),
           verb("verify", "Compare the positions of all visitors with the draw", {}, verify,
                {{"PLACE", "Show where the draw puts these places", into(args->places), false}}),
           verb("remove", "Delete a waiting room", {}, remove)},
      .details = R"(  sluice room create maotai --rate 50 --inside 500 --opens 2026-11-11T12:00Z
  sluice room units maotai 0
  sluice room verify maotai 4711)"};
}

}  // namespace sluice::cli
