/// Words become calls of Target::set, by getopt_long(3).
#include <getopt.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/duration.hpp"
#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/text.hpp"
#include "cli/command_line/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"

namespace sluice::cli {
namespace {

Error bad(const std::string& message) { return {Errc::bad_argument, message}; }

Error unknown_command(const Command& parent, const std::string& word) {
  const Command* nearest = nullptr;
  for (const Command& command : parent.commands)
    if (!command.hidden &&
        (!nearest || edit_distance(command.name, word) < edit_distance(nearest->name, word)))
      nearest = &command;
  const bool near =
      nearest && edit_distance(nearest->name, word) <= std::max<std::size_t>(2, word.size() / 2);
  return bad(fmt::format("unknown command '{}'{}", word,
                         near ? fmt::format("; did you mean '{}'?", nearest->name) : ""));
}

/// The options that the commands of a path understand, in the form of getopt_long.
class OptionTable {
 public:
  explicit OptionTable(std::span<const Command* const> path) {
    for (auto command = path.rbegin(); command != path.rend(); ++command)
      for (const Option& option : (*command)->options) add(option);
    long_names_.push_back({});
  }

  const char* letters() const noexcept { return letters_.c_str(); }
  const ::option* long_names() const noexcept { return long_names_.data(); }
  /// `code`: a letter, or what getopt_long says of a long name. Null: there is none.
  const Option* find(int code) const {
    if (code >= first_code) return options_[static_cast<std::size_t>(code - first_code)];
    for (const Option* const option : options_)
      for (const auto name : names_of(*option))
        if (name.size() == 2 && name[1] == code) return option;
    return nullptr;
  }

 private:
  static constexpr int first_code = 256;  // beyond all letters

  void add(const Option& option) {
    const bool takes_word = option.target.takes != Target::Takes::nothing;
    options_.push_back(&option);
    for (const auto name : names_of(option)) {
      if (name.starts_with("--")) {
        names_.emplace_back(name.substr(2));
        long_names_.push_back({names_.back().c_str(), takes_word ? required_argument : no_argument,
                               nullptr, first_code + static_cast<int>(options_.size()) - 1});
      } else {
        letters_ += name[1];
        if (takes_word) letters_ += ':';
      }
    }
  }

  std::string letters_ = "-:";    // words are told in their place; a missing value is ':'
  std::list<std::string> names_;  // where getopt finds the long ones; a list, since they must stay
  std::vector<::option> long_names_;
  std::vector<const Option*> options_;
};

class Reader {
 public:
  explicit Reader(const Command& root) : path_{&root}, table_(path_) {}

  void read(std::span<char* const> words) {
    std::string program = "sluice";  // getopt passes over the first word
    std::vector<char*> line{program.data()};
    line.insert(line.end(), words.begin(), words.end());
    const int count = static_cast<int>(line.size());
    line.push_back(nullptr);
    ::opterr = 0;
    ::optind = 0;
    for (int code = 0;
         !command_words_ && (code = ::getopt_long(count, line.data(), table_.letters(),
                                                  table_.long_names(), nullptr)) != -1;)
      take(code, line);
    bool dashes = !command_words_ && ::optind > 1 && std::string_view{line[::optind - 1]} == "--";
    for (; ::optind < count; ++::optind) {
      const std::string word = line[static_cast<std::size_t>(::optind)];
      if (!dashes && !command_words_ && word == "--")
        dashes = true;
      else if (!dashes && word.size() > 1 && word[0] == '-')
        throw needs_dashes(word);
      else
        take_word(word, dashes, nullptr);
    }
  }

  /// Throws Error{bad_argument} when something is missing.
  const Command& chosen() const {
    const Command& command = *path_.back();
    for (std::size_t i = argument_; i < command.arguments.size(); ++i)
      if (command.arguments[i].required && !(command_words_ && i == argument_))
        throw bad(command.arguments[i].name + " is missing");
    for (const Option& option : command.options)
      if (option.required && !given_.contains(&option))
        throw bad(fmt::format("{} is missing", names_of(option).front()));
    if (!command.action) throw bad("a command is missing");
    return command;
  }

  std::vector<std::string> path() const {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < path_.size(); ++i) names.push_back(path_[i]->name);
    return names;
  }

  /// "sale buy 'shoes'": what `message` is about. Empty: it says so itself.
  std::string subject(std::string_view message) const {
    const std::string quoted = first_argument_ ? fmt::format("'{}'", *first_argument_) : "";
    if (first_argument_ && message.contains(quoted)) return {};
    std::string text;
    for (const auto& name : path()) text += (text.empty() ? "" : " ") + name;
    return first_argument_ ? text + ' ' + quoted : text;
  }

 private:
  void take(int code, const std::vector<char*>& line) {
    const std::string word = line[static_cast<std::size_t>(::optind - 1)];
    if (code == 1) {
      const char* const next = line[static_cast<std::size_t>(::optind)];
      return take_word(::optarg, false, next);
    }
    if (code == ':') throw bad(fmt::format("'{}' needs a value", word));
    if (code == '?') throw unknown_option(word);
    const Option& option = *table_.find(code);
    given_.insert(&option);
    set(option.target, names_of(option).back(), ::optarg ? ::optarg : "");
  }

  void take_word(const std::string& word, bool dashes, const char* next) {
    const Command& command = *path_.back();
    if (argument_ < command.arguments.size()) {
      const Argument& argument = command.arguments[argument_];
      if (dashes || !argument.after_dashes) {
        // `latch set 3`: the name was forgotten. `latch set show` is about a latch called "set".
        if (!dashes && find_command(command, word) && !(next && find_command(command, next)))
          throw bad(fmt::format("{} is missing before '{}'", argument.name, word));
        if (!first_argument_ && argument.name != "URL") first_argument_ = word;  // no password
        set(argument.target, argument.name, word);
        command_words_ = argument.target.takes == Target::Takes::many_words;
        if (!command_words_) ++argument_;
        return;
      }
    }
    if (command.commands.empty()) {
      const auto file = std::ranges::find(command.options, "FILE", &Option::value);
      const bool is_file = file != command.options.end();
      throw bad(fmt::format(
          "'{}' is one word too many{}", word,
          is_file ? fmt::format("; did you mean '{} {}'?", names_of(*file).front(), word) : ""));
    }
    const Command* const child = find_command(command, word);
    if (!child) throw unknown_command(command, word);
    path_.push_back(child);
    table_ = OptionTable{path_};
    argument_ = 0;
  }

  static void set(const Target& target, std::string_view name, const std::string& word) {
    try {
      target.set(word);
    } catch (const Error& wrong) {
      throw bad(fmt::format("{}: {}", name, wrong.message()));
    }
  }

  Error unknown_option(const std::string& word) const {
    const auto name = word.substr(0, word.find('='));
    for (const Command* const command : path_)
      for (const Option& option : command->options)
        if (std::ranges::count(names_of(option), name) > 0)
          return bad(fmt::format("'{}' takes no value", name));
    const bool runs = std::ranges::any_of(path_.back()->arguments, [](const Argument& argument) {
      return argument.target.takes == Target::Takes::many_words;
    });
    const auto option = word.starts_with("--") ? name : fmt::format("-{}", char(::optopt));
    return bad(fmt::format("unknown option '{}'{}", option,
                           runs ? "; write -- before a command that has options" : ""));
  }

  static Error needs_dashes(const std::string& word) {
    return bad(
        fmt::format("'{}' stands behind the command's name: write -- before a command that "
                    "has options, and options of sluice before the command",
                    word));
  }

  std::vector<const Command*> path_;
  OptionTable table_;
  std::size_t argument_ = 0;    ///< of the last command: which one the next word is
  bool command_words_ = false;  ///< the first of an argument's many words has come
  std::optional<std::string> first_argument_;
  std::set<const Option*> given_;
};

Command help_command(const Program& program) {
  struct Asked {
    std::vector<std::string> words;
    bool man = false, markdown = false;
  };
  const auto asked = std::make_shared<Asked>();
  return {
      .name = "help",
      .summary = "Explain a command",
      .arguments = {{"COMMAND", "Which one; 'exit-codes': what the program exits with",
                     into(asked->words), false}},
      .options = {{"--man", "", "As a man page, in roff", into(asked->man)},
                  {"--markdown", "", "As Markdown; without COMMAND all of them",
                   into(asked->markdown)}},
      .action =
          [&program, asked] {
            const auto text = asked->markdown ? markdown(program.root, asked->words)
                              : asked->man    ? man_page(program, asked->words)
                                              : help_text(program.root, asked->words);
            put("{}", text);
            return exit_ok;
          },
      .hidden = program.is_part,
  };
}

Command completion_command(const Command& root) {
  const auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .summary = "Print a script that lets a shell complete this program's command lines",
          .arguments = {{"SHELL", "bash, zsh or fish", into(*shell)}},
          .details = fmt::format("  eval \"$({} completion bash)\"     # in ~/.bashrc", root.name),
          .action = [&root, shell] {
            put("{}", completion_script(root, *shell));
            return exit_ok;
          }};
}

int answer_completion(const Command& root, std::span<char* const> words) {
  for (const auto& line : completions(root, std::vector<std::string>{words.begin(), words.end()}))
    put("{}\n", line);
  return with_output_written(exit_ok);
}

}  // namespace

std::vector<std::string_view> names_of(const Option& option) {
  std::vector<std::string_view> names;
  for (std::string_view rest = option.names; !rest.empty();) {
    const auto end = std::min(rest.find(", "), rest.size());
    names.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return names;
}

const Command* find_command(const Command& parent, std::string_view name) {
  const auto found = std::ranges::find(parent.commands, name, &Command::name);
  return found == parent.commands.end() ? nullptr : &*found;
}

std::vector<const Command*> commands_on(const Command& root, std::span<const std::string> path) {
  std::vector<const Command*> commands{&root};
  for (const auto& name : path) {
    const Command* const child = find_command(*commands.back(), name);
    if (!child) throw unknown_command(*commands.back(), name);
    commands.push_back(child);
  }
  return commands;
}

Target into(bool& flag) {
  return {Target::Takes::nothing, [&flag](const std::string&) { flag = true; }, {}};
}

Target into(std::string& text) {
  return {Target::Takes::one_word, [&text](const std::string& word) { text = word; }, text};
}

Target into(std::vector<std::string>& words) {
  return {
      Target::Takes::many_words, [&words](const std::string& word) { words.push_back(word); }, {}};
}

Target into(std::chrono::milliseconds& time) {
  const auto set = [&time](const std::string& word) {
    const auto parsed = sluice::parse_duration(word, std::chrono::seconds{1});
    if (!parsed)
      throw bad(
          fmt::format("'{}' is no time: write {}; a bare number is seconds", word, duration_form));
    time = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
  };
  return {Target::Takes::one_word, set, duration_text(time)};
}

Target into_instant(std::optional<WallTime>& instant) {
  const auto set = [&instant](const std::string& word) {
    instant = parse_instant(word);
    if (!instant) throw bad(fmt::format("'{}' is no instant: write {}", word, instant_form));
  };
  return {Target::Takes::one_word, set, {}};
}

Target into(double& number, double least, double most) {
  const auto set = [&number, least, most](const std::string& word) {
    const auto value = parse_decimal(word);
    if (!value || !(*value >= least) || !(*value <= most))
      throw bad(fmt::format("'{}' is no number from {} to {}", word, least, most));
    number = *value;
  };
  return {Target::Takes::one_word, set, fmt::format("{}", number)};
}

Target into_integer(std::function<void(std::int64_t)> set, std::string preset, std::int64_t least,
                    std::int64_t most) {
  const auto read = [set = std::move(set), least, most](const std::string& word) {
    const auto value = parse_integer<std::int64_t>(word);
    if (!value || *value < least || *value > most)
      throw bad(fmt::format("'{}' is no integer from {} to {}", word, least, most));
    set(*value);
  };
  return {Target::Takes::one_word, read, std::move(preset)};
}

int run_program(Program program, std::span<char* const> words) {
  prepare_streams();
  Command& root = program.root;
  bool help = false;
  bool version = false;
  if (!root.commands.empty()) {
    root.commands.push_back(help_command(program));
    if (!root.name.contains(' ') && !program.is_part)
      root.commands.push_back(completion_command(root));
  }
  root.options.push_back({"-h, --help", "", "Explain the command", into(help)});
  root.options.push_back({"--version", "", "Print the version", into(version)});
  if (!words.empty() && std::string_view{words[0]} == "__complete")
    return answer_completion(root, words.subspan(1));
  if (words.size() == 2 && std::string_view{words[0]} == "__pages")
    return write_pages(program, words[1]), exit_ok;

  Reader reader{root};
  const Command* chosen = nullptr;
  try {
    reader.read(words);
    if (!help && !version) chosen = &reader.chosen();
  } catch (const Error& wrong) {
    std::string line = root.name;
    for (const auto& name : reader.path()) line += ' ' + name;
    complain("{} (see '{} --help')", wrong.message(), line);
    return exit_usage;
  }
  if (version) put("sluice {}\n", program.version);
  if (!version && help) put("{}", help_text(root, reader.path()));
  if (!chosen) return with_output_written(exit_ok);
  try {
    return with_output_written(chosen->action());
  } catch (const std::exception& failure) {
    return with_output_written(report(failure, reader.subject(failure.what())));
  }
}

}  // namespace sluice::cli
