#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/cli/commands.h"

namespace runner::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  // Those that help does not name are not for people.
  const auto all = app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  return {all.begin(), all.end()};
}

std::string flags_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) text += (text.empty() ? "--" : " --") + name;
  }
  return text;
}

std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string text;
  for (const CLI::App* command : commands) text += (text.empty() ? "" : " ") + command->get_name();
  return text;
}

/// Words by command; files where no word fits. The same function serves bash and, through bashcompinit, zsh.
std::string bash_script(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string text =
      "_roux() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    words=\"" +
      names_of(commands) + " " + flags_of(app) +
      "\"\n"
      "  else\n"
      "    case \"${COMP_WORDS[1]}\" in\n";
  for (const CLI::App* command : commands) {
    const std::vector<const CLI::App*> inner = commands_of(*command);
    std::string words = flags_of(*command) + " " + flags_of(app);
    if (command->get_name() == "list")
      words = "$(roux list 2>/dev/null | sed -n 's/^\\([a-z_]*\\): .*/\\1/p') " + words;
    if (!inner.empty()) words = names_of(inner) + " " + words;
    text += "      " + command->get_name() + ") words=\"" + words + "\" ;;\n";
  }
  text +=
      "    esac\n"
      "  fi\n"
      "  while IFS= read -r reply; do COMPREPLY+=(\"$reply\"); done < <(compgen -W \"$words\" -- \"$word\"; [ "
      "\"$COMP_CWORD\" -gt 1 ] && compgen -f -- \"$word\")\n"
      "}\n"
      "complete -o filenames -F _roux roux\n";
  return text;
}

std::string fish_script(const CLI::App& app) {
  std::string text;
  const auto quoted = [](const std::string& words) {
    std::string safe;
    for (const char c : words) safe += c == '\'' ? std::string("\\'") : std::string(1, c);
    return "'" + safe + "'";
  };
  const auto add_flags = [&](const CLI::App& command, const std::string& condition) {
    for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
      for (const std::string& name : option->get_lnames())
        text += "complete -c roux" + condition + " -l " + name + " -d " + quoted(option->get_description()) + "\n";
    }
  };
  add_flags(app, "");
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    text +=
        "complete -c roux -n __fish_use_subcommand -f -a " + name + " -d " + quoted(command->get_description()) + "\n";
    const std::string condition = " -n '__fish_seen_subcommand_from " + name + "'";
    for (const CLI::App* inner : commands_of(*command))
      text += "complete -c roux" + condition + " -a " + inner->get_name() + " -d " + quoted(inner->get_description()) +
              "\n";
    add_flags(*command, condition);
  }
  return text;
}

void completion(const CLI::App& app, const std::string& shell, Session& session) {
  std::string text;
  if (shell == "bash") {
    text = bash_script(app);
  } else if (shell == "zsh") {
    text = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
  } else if (shell == "fish") {
    text = fish_script(app);
  } else {
    return session.fail("there is no completion for \"" + shell + "\"", "the shells are bash, zsh and fish");
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands and flags in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  command->footer(
      "\nExamples:\n"
      "  source <(roux completion bash)\n"
      "  roux completion fish > ~/.config/fish/completions/roux.fish\n");
  command->callback(
      [shell, &app, &session] { session.command = [shell, &app, &session] { completion(app, *shell, session); }; });
}

}  // namespace runner::cli
