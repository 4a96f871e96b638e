/// `sluice bloom create|add|contains|info|rebuild|save|load NAME`: shared Bloom filters. Keys are
/// arguments, or the lines of standard input.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/integer.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/output.hpp"
#include "sluice/shared_bloom_filter.hpp"

namespace sluice::cli {
namespace {

struct BloomArgs {
  std::string name;
  std::vector<std::string> keys;
  std::string file;
  SharedBloomSize size;
  std::string codec = "string";
  std::string type = "text";
  bool absent = false;
  std::uint64_t at_least = 1;
};

constexpr std::size_t keys_together = 10'000;
constexpr std::size_t bytes_together = 8 << 20;
constexpr std::size_t longest_key = 64 << 20;

SharedBloomFilter filter_of(Store& store, const BloomArgs& args) {
  if (args.codec != "string" && args.codec != "kryo5")
    throw Error{Errc::bad_argument,
                fmt::format("--codec: '{}' is neither string nor kryo5", args.codec)};
  const auto codec = args.codec == "string" ? BloomCodec::string : BloomCodec::kryo5;
  return SharedBloomFilter{store, args.name, {.codec = codec}};
}

/// Keys as they come: the arguments, or else the lines of standard input without their ends.
class KeySource {
 public:
  explicit KeySource(const BloomArgs& args) : args_(args) {
    if (args.type != "text" && args.type != "int" && args.type != "long")
      throw Error{Errc::bad_argument,
                  fmt::format("--type: '{}' is none of text, int, long", args.type)};
  }

  /// The next of them, some thousand at most; empty: there are no more. Valid until the next call.
  std::span<const std::string> next() {
    batch_.clear();
    goes_on_ = false;
    if (!args_.keys.empty()) {
      const auto end = std::min(args_.keys.size(), taken_ + keys_together);
      for (; taken_ < end; ++taken_) batch_.push_back(args_.keys[taken_]);
    } else {
      std::size_t bytes = 0;
      while (batch_.size() < keys_together && bytes < bytes_together) {
        std::string line;
        if (!read_line(line)) break;
        ++taken_;
        bytes += line.size();
        batch_.push_back(std::move(line));
      }
      goes_on_ = batch_.size() == keys_together || bytes >= bytes_together;
    }
    return batch_;
  }

  /// Whether the standard input may have more of them: it takes longer than a moment.
  bool goes_on() const noexcept { return goes_on_; }

  /// The same as keys of the filter.
  std::vector<BloomKey> keys() const {
    std::vector<BloomKey> keys;
    keys.reserve(batch_.size());
    for (std::size_t i = 0; i < batch_.size(); ++i) keys.push_back(key_of(i));
    return keys;
  }

 private:
  bool read_line(std::string& line) {
    for (;;) {
      const auto rest = std::string_view{buffer_.data(), filled_}.substr(used_);
      const auto end = rest.find('\n');
      line += rest.substr(0, end);
      if (line.size() > longest_key)
        throw Error{Errc::corrupt, fmt::format("line {} of the standard input has more than {} "
                                               "bytes: a key a line is expected",
                                               taken_ + 1, longest_key)};
      if (end != rest.npos) {
        used_ += end + 1;
        return true;
      }
      used_ = 0;
      filled_ = std::fread(buffer_.data(), 1, buffer_.size(), stdin);
      if (filled_ > 0) continue;
      if (std::ferror(stdin) != 0) throw Error{Errc::corrupt, "the standard input cannot be read"};
      return !line.empty();
    }
  }

  BloomKey key_of(std::size_t i) const {
    const std::string& text = batch_[i];
    if (args_.type == "text") return text;
    const auto number = parse_integer<std::int64_t>(text);
    const auto small = parse_integer<std::int32_t>(text);
    if (!number || (args_.type == "int" && !small))
      throw Error{Errc::bad_argument,
                  fmt::format("key {}: '{}' is no {}", taken_ - batch_.size() + i + 1,
                              text.substr(0, 100), args_.type)};
    if (args_.type == "int") return *small;
    return *number;
  }

  const BloomArgs& args_;
  std::vector<std::string> batch_;
  bool goes_on_ = false;
  std::size_t taken_ = 0;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
};

/// "added 120,000 keys, 310,000 a second", while it goes on
class Pace {
 public:
  Pace(const Globals& globals, std::string verb)
      : verb_(std::move(verb)), progress_(globals.json, stderr) {}

  void add(std::size_t keys, bool goes_on) {
    keys_ += keys;
    if (goes_on) progress_.show(line());
  }
  std::size_t keys() const noexcept { return keys_; }
  double seconds() const {
    return std::chrono::duration<double>(system_clock().steady() - begin_).count();
  }
  std::string line() const {
    return fmt::format("{} {} keys, {:.0f} a second", verb_, keys_,
                       static_cast<double>(keys_) / std::max(seconds(), 1e-6));
  }

 private:
  const std::string verb_;
  Progress progress_;
  const SteadyTime begin_ = system_clock().steady();
  std::size_t keys_ = 0;
};

int create(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  auto filter = filter_of(*store, args);
  const bool created = filter.try_create(args.size).get();
  if (!created) filter.ensure_created(args.size).get();
  warn_if_in_memory(globals, "the filter");
  const auto info = filter.info().get();
  print(globals.json,
        Json::object({{"ok", true},
                      {"created", created},
                      {"bits", info.links.front().bits},
                      {"hashes", info.links.front().hashes}}),
        fmt::format("Bloom filter '{}' {}: {} bits, {} hashes", args.name,
                    created ? "is made" : "was there", info.links.front().bits,
                    info.links.front().hashes));
  return exit_ok;
}

int add(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  auto filter = filter_of(*store, args);
  KeySource source{args};
  Pace pace{globals, "added"};
  std::size_t fresh = 0;
  while (!source.next().empty()) {
    const auto keys = source.keys();
    const auto answers = filter.add(keys).get();
    fresh += static_cast<std::size_t>(std::ranges::count(answers, true));
    pace.add(keys.size(), source.goes_on());
  }
  warn_if_in_memory(globals, "the filter");
  print(globals.json, Json::object({{"ok", true}, {"keys", pace.keys()}, {"new", fresh}}),
        fmt::format("{}; {} were new", pace.line(), fresh));
  return exit_ok;
}

int contains(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  auto filter = filter_of(*store, args);
  KeySource source{args};
  Pace pace{globals, "asked for"};
  std::size_t there = 0;
  std::size_t told = 0;
  if (globals.json) put_text("{\"keys\":[");
  for (auto lines = source.next(); !lines.empty(); lines = source.next()) {
    const auto answers = filter.contains(source.keys()).get();
    there += static_cast<std::size_t>(std::ranges::count(answers, true));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == args.absent) continue;
      if (globals.json)
        put("{}{}", told == 0 ? "" : ",", Json{lines[i]}.text());
      else
        put("{}\n", lines[i]);
      ++told;
    }
    pace.add(answers.size(), source.goes_on());
  }
  if (globals.json) put("],\"ok\":true,\"asked\":{},\"contained\":{}}}\n", pace.keys(), there);
  return told > 0 ? exit_ok : exit_check_failed;
}

Json filter_json(const SharedBloomInfo& info) {
  Json links = Json::array();
  for (const auto& link : info.links)
    links.add(Json::object({{"bits", link.bits},
                            {"hashes", link.hashes},
                            {"capacity", link.capacity},
                            {"bits_set", link.bits_set},
                            {"bytes", link.bytes}}));
  return Json::object({{"ok", true},
                       {"keys", info.keys},
                       {"expected", info.expected},
                       {"error_rate", info.error_rate},
                       {"error_rate_now", info.error_rate_now},
                       {"scalable", info.scalable},
                       {"rebuilding", info.rebuilding},
                       {"left_ms", info.left ? Json{info.left->count()} : Json{}},
                       {"links", links}});
}

std::string text_of(const BloomArgs& args, const SharedBloomInfo& info) {
  std::string text =
      fmt::format("Bloom filter '{}': about {} keys of {}; error rate {:.2g}, ordered {:.2g}{}{}",
                  args.name, info.keys, info.expected, info.error_rate_now, info.error_rate,
                  info.left ? fmt::format("; expires in {} s", info.left->count() / 1000) : "",
                  info.rebuilding ? "; is rebuilt now" : "");
  for (const auto& link : info.links)
    text += fmt::format("\n  {} bits, {} hashes, {:.1f} % set, for {} keys; {} bytes", link.bits,
                        link.hashes,
                        100 * static_cast<double>(link.bits_set) / static_cast<double>(link.bits),
                        link.capacity, link.bytes);
  return text;
}

int info(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  const auto info = filter_of(*store, args).info().get();
  print(globals.json, filter_json(info), text_of(args, info));
  return exit_ok;
}

int rebuild(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  auto filter = filter_of(*store, args);
  KeySource source{args};
  auto rebuilding = filter.try_rebuild(args.size).get();
  if (!rebuilding) {
    complain(
        "Bloom filter '{}' is rebuilt by another program, or one that died: then it can be rebuilt "
        "ten minutes after that one's last key",
        args.name);
    return exit_refused;
  }
  Pace pace{globals, "rebuilt with"};
  while (!source.next().empty()) {
    const auto keys = source.keys();
    rebuilding->add(keys).get();
    pace.add(keys.size(), source.goes_on());
  }
  if (pace.keys() < args.at_least)  // as where the program before the pipe has failed
    throw Error{Errc::corrupt,
                fmt::format("{} keys came, and {} at least are expected: the filter stays as it "
                            "was; look at their source, or lower --at-least",
                            pace.keys(), args.at_least)};
  rebuilding->finish().get();
  print(globals.json, Json::object({{"ok", true}, {"keys", pace.keys()}}), pace.line());
  return exit_ok;
}

int save(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  filter_of(*store, args).save(args.file).get();
  print(globals.json, Json::object({{"ok", true}, {"file", args.file}}),
        fmt::format("Bloom filter '{}' is saved in {}", args.name, args.file));
  return exit_ok;
}

int load(const Globals& globals, const BloomArgs& args) {
  const auto store = open_store(globals);
  filter_of(*store, args).load(args.file).get();
  warn_if_in_memory(globals, "the filter");
  print(globals.json, Json::object({{"ok", true}, {"file", args.file}}),
        fmt::format("Bloom filter '{}' is loaded from {}", args.name, args.file));
  return exit_ok;
}

}  // namespace

Command bloom_command(const Globals& globals) {
  const auto args = std::make_shared<BloomArgs>();
  const Argument name{"NAME", "Name of the filter", into(args->name)};
  const Argument keys{"KEY", "Keys; without any: the lines of the standard input", into(args->keys),
                      false};
  const Argument file{"FILE", "The file", into(args->file)};
  const Option codec{"--codec", "CODEC",
                     "How keys become bytes: string, or kryo5, Redisson's default",
                     into(args->codec)};
  const Option type{"--type", "TYPE", "What the keys are for kryo5: text, int or long",
                    into(args->type)};
  const std::vector<Option> size{
      {"-n, --expected", "N", "How many keys it is for",
       into(args->size.expected, 1, 1'000'000'000'000), true},
      {"--error-rate", "P", "Of how many absent keys it may say that they are there",
       into(args->size.error_rate, 1e-15, 0.999)},
      {"--scalable", "", "Grow beyond N, and keep the error rate", into(args->size.scalable)}};
  auto rebuild_options = size;
  rebuild_options.insert(rebuild_options.end(),
                         {{"--at-least", "N", "With fewer keys the filter stays as it was",
                           into(args->at_least, 0, 1'000'000'000'000)},
                          codec,
                          type});
  const auto verb = [&](std::string verb_name, std::string summary, std::vector<Argument> arguments,
                        std::vector<Option> options, int (*run)(const Globals&, const BloomArgs&)) {
    return Command{.name = std::move(verb_name),
                   .summary = std::move(summary),
                   .arguments = std::move(arguments),
                   .options = std::move(options),
                   .action = [&globals, args, run] { return run(globals, *args); }};
  };
  const Option absent{"--absent", "", "Print those that are certainly not there",
                      into(args->absent)};
  return {
      .name = "bloom",
      .summary = "Shared Bloom filters: ask whether a key may exist",
      .commands = {verb("create", "Make a filter, unless there is one of this size", {name}, size,
                        create),
                   verb("add", "Add keys", {name, keys}, {codec, type}, add),
                   verb("contains",
                        "Print the keys that may be there; exit with 1 where nothing is printed",
                        {name, keys}, {absent, codec, type}, contains),
                   verb("info", "How full it is, and how often it is wrong", {name}, {}, info),
                   verb("rebuild",
                        "Put a new filter into its place when all keys are in, while others go on",
                        {name, keys}, rebuild_options, rebuild),
                   verb("save", "Write it to a file", {name, file}, {codec}, save),
                   verb("load", "Put what a file has into its place", {name, file}, {codec}, load)},
      .details = R"(  sluice bloom create users --expected 1000000 --error-rate 0.01
  psql -Atc 'select id from users' | sluice bloom add users
  sluice bloom contains users 4711 && echo 'may exist')"};
}

}  // namespace sluice::cli
