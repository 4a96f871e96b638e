/// What people read of a table of commands: help, man pages, the reference in Markdown.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/command_line/command.hpp"
#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {
namespace {

/// A heading, and terms with what they mean.
struct Section {
  struct Row {
    std::string term, meaning;
  };
  std::string heading;
  std::vector<Row> rows{};
};

std::string joined(const Command& root, std::span<const std::string> path) {
  std::string line = root.name;
  for (const auto& name : path) line += ' ' + name;
  return line;
}

std::string sentence(const std::string& text) { return text.empty() ? "" : text + '.'; }

std::string with_preset(const std::string& help, const Target& target) {
  return target.preset.empty() ? help : fmt::format("{} (default {})", help, target.preset);
}

Section options_of(std::string heading, const Command& command) {
  Section section{std::move(heading)};
  for (const Option& option : command.options)
    section.rows.push_back(
        {option.value.empty() ? option.names : option.names + ' ' + option.value,
         option.required ? option.help + "; needed" : with_preset(option.help, option.target)});
  return section;
}

std::string usage_of(const Argument& argument) {
  const bool many = argument.target.takes == Target::Takes::many_words;
  const std::string word =
      (argument.after_dashes ? "-- " : "") + argument.name + (many ? "..." : "");
  return ' ' + (argument.required ? word : '[' + word + ']');
}

/// `sluice latch [OPTIONS] NAME [COMMAND] [-- CMD...]`, from the chain of commands.
std::string usage(std::span<const Command* const> chain) {
  const Command& last = *chain.back();
  std::string line = chain.front()->name;
  for (const Command* const command : chain.subspan(1)) {
    line += ' ' + command->name;
    if (command == &last && !last.options.empty()) line += " [OPTIONS]";
    for (const Argument& argument : command->arguments)
      if (!argument.after_dashes) line += usage_of(argument);
  }
  if (!last.commands.empty()) line += last.action ? " [COMMAND]" : " COMMAND";
  for (const Argument& argument : last.arguments)
    if (argument.after_dashes) line += usage_of(argument);
  return line;
}

std::vector<Section> sections_of(const Command& command) {
  Section arguments{"Arguments"};
  for (const Argument& argument : command.arguments)
    arguments.rows.push_back({argument.name, argument.required
                                                 ? argument.help
                                                 : with_preset(argument.help, argument.target)});
  Section commands{"Commands"};
  for (const Command& child : command.commands)
    if (!child.hidden) commands.rows.push_back({child.name, child.summary});
  std::vector<Section> sections{arguments, options_of("Options", command), commands};
  std::erase_if(sections, [](const Section& section) { return section.rows.empty(); });
  return sections;
}

Section exit_codes() {
  Section section{"Exit codes"};
  for (const auto& [code, meaning] : exit_code_rows())
    section.rows.push_back({std::to_string(static_cast<int>(code)), std::string{meaning}});
  section.rows.push_back(
      {"other", "lock, semaphore, latch: what the command returned; 128 + N: signal N ended it"});
  return section;
}

// As text, 80 columns wide.

void append_wrapped(std::string& text, std::string_view words, std::size_t indent) {
  constexpr std::size_t width = 80;
  std::size_t column = indent;
  while (!words.empty()) {
    const auto word = words.substr(0, words.find(' '));
    if (column > indent && column + word.size() + 1 > width) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) text += ' ', ++column;
    text += word;
    column += word.size();
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  text += '\n';
}

void append(std::string& text, const Section& section) {
  std::size_t indent = 0;
  for (const auto& row : section.rows) indent = std::max(indent, row.term.size() + 4);
  indent = std::min<std::size_t>(indent, 28);
  text += '\n' + section.heading + ":\n";
  for (const auto& row : section.rows) {
    text += fmt::format("  {:<{}}", row.term, indent - 2);
    if (row.term.size() + 4 > indent) text += '\n' + std::string(indent, ' ');
    append_wrapped(text, row.meaning, indent);
  }
}

// In roff.

std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (escaped.empty() || escaped.back() == '\n')
      if (c == '.' || c == '\'') escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

void append_roff(std::string& page, const std::vector<Section::Row>& rows) {
  for (const auto& row : rows)
    page += fmt::format(".TP\n.B {}\n{}\n", roff(row.term), roff(row.meaning));
}

void append_roff_details(std::string& page, const Command& command) {
  if (!command.details.empty()) page += ".PP\n.nf\n" + roff(command.details) + "\n.fi\n";
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return text;
}

void append_roff(std::string& page, const Section& section) {
  page += fmt::format(".SH \"{}\"\n", in_capitals(section.heading));
  append_roff(page, section.rows);
}

std::string page_name(std::string line) {
  std::ranges::replace(line, ' ', '-');
  return line;
}

/// The commands below the one that the page is about, each with its options.
void append_roff_children(std::string& page, std::vector<const Command*> chain) {
  for (const Command& child : chain.back()->commands) {
    if (child.hidden) continue;
    chain.push_back(&child);
    page += fmt::format(".SS \"{}\"\n{}\n", roff(usage(chain)), roff(sentence(child.summary)));
    for (const Section& section : sections_of(child)) append_roff(page, section.rows);
    append_roff_details(page, child);
    chain.pop_back();
  }
}

// In Markdown.

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string{"\\|"} : std::string{c};
  return escaped;
}

void append_markdown(std::string& page, const Section& section) {
  page += fmt::format("\n| {} | |\n|---|---|\n", section.heading);
  for (const auto& row : section.rows)
    page += fmt::format("| `{}` | {} |\n", cell(row.term), cell(row.meaning));
}

void append_markdown(std::string& page, std::vector<const Command*> chain,
                     const std::string& name) {
  const Command& command = *chain.back();
  page += fmt::format("\n## {}\n\n{}\n\n```text\n{}\n```\n", name, sentence(command.summary),
                      usage(chain));
  for (const Section& section : sections_of(command))
    if (section.heading != "Commands") append_markdown(page, section);
  if (!command.details.empty()) page += "\n```text\n" + command.details + "\n```\n";
  for (const Command& child : command.commands) {
    if (child.hidden) continue;
    chain.push_back(&child);
    append_markdown(page, chain, name + ' ' + child.name);
    chain.pop_back();
  }
}

}  // namespace

std::string help_text(const Command& root, std::span<const std::string> path) {
  std::string text;
  if (path.size() == 1 && path[0] == "exit-codes") {
    append(text, exit_codes());
    return text.substr(1);
  }
  const auto chain = commands_on(root, path);
  text = fmt::format("Usage: {}\n\n", usage(chain));
  append_wrapped(text, sentence(chain.back()->summary), 0);
  for (const Section& section : sections_of(*chain.back())) append(text, section);
  if (!chain.back()->details.empty()) text += '\n' + chain.back()->details + '\n';
  if (root.commands.empty()) return text;
  if (path.empty()) append(text, exit_codes());
  text += path.empty() ? fmt::format("\n'{0} help COMMAND' explains a command.\n", root.name)
                       : fmt::format("\n'{0} help exit-codes' tells the exit codes.\n", root.name);
  return text;
}

std::string man_page(const Program& program, std::span<const std::string> path) {
  const auto chain = commands_on(program.root, path);
  const std::string line = joined(program.root, path);
  std::string page = fmt::format(".TH {} 1 \"\" \"sluice {}\" \"Sluice\"\n.SH NAME\n{} \\- {}\n",
                                 roff(in_capitals(page_name(line))), program.version,
                                 roff(page_name(line)), roff(chain.back()->summary));
  page += fmt::format(".SH SYNOPSIS\n.B {}\n", roff(usage(chain)));
  page += fmt::format(".SH DESCRIPTION\n{}\n", roff(sentence(chain.back()->summary)));
  append_roff_details(page, *chain.back());
  const bool is_list = path.empty() && !program.root.name.contains(' ');
  for (const Section& section : sections_of(*chain.back()))
    if (is_list || section.heading != "Commands") append_roff(page, section);
  if (!is_list) {
    if (!chain.back()->commands.empty()) page += ".SH COMMANDS\n";
    append_roff_children(page, chain);
  }
  if (path.empty()) {
    append_roff(page, exit_codes());
  } else {
    append_roff(page, options_of("Options of every command", program.root));
    page += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(page_name(program.root.name)));
  }
  return page;
}

void write_pages(const Program& program, const std::string& folder) {
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path{folder} / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream output{file};
    output << text << std::flush;
    if (!output) throw Error{Errc::bad_argument, fmt::format("cannot write '{}'", file.string())};
  };
  const std::string name = page_name(program.root.name);
  if (!program.is_part) write(fmt::format("man/man1/{}.1", name), man_page(program, {}));
  if (program.root.name != name) return;  // the other program's pages and completion cover it
  for (const Command& command : program.root.commands)
    if (!command.hidden && !command.is_a_program)
      write(fmt::format("man/man1/{}-{}.1", name, command.name),
            man_page(program, std::vector{command.name}));
  if (program.is_part) return;
  write("bash-completion/completions/" + name, completion_script(program.root, "bash"));
  write("zsh/site-functions/_" + name, completion_script(program.root, "zsh"));
  write("fish/vendor_completions.d/" + name + ".fish", completion_script(program.root, "fish"));
}

std::string markdown(const Command& root, std::span<const std::string> path) {
  if (!path.empty()) {
    std::string section;
    append_markdown(section, commands_on(root, path), joined(root, path));
    return section;
  }
  std::string page = fmt::format(
      "# The command line of `{0}`\n\n{1} This page is what `{0} help --markdown` prints.\n",
      root.name, sentence(root.summary));
  append_markdown(page, options_of("Options of every command", root));
  for (const Command& child : root.commands)
    if (!child.hidden) append_markdown(page, {&root, &child}, root.name + ' ' + child.name);
  page += "\n## Exit codes\n";
  append_markdown(page, exit_codes());
  return page;
}

}  // namespace sluice::cli
