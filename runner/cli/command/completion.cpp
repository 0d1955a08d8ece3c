#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"

namespace runner::cli {
namespace {

// The scripts ask the program itself, so that they know its runs and never grow old. Files where no word fits.

constexpr const char* kBash = R"(_roux() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(
    roux complete "${COMP_WORDS[@]:1:$COMP_CWORD}" 2>/dev/null
    [ "$COMP_CWORD" -gt 1 ] && compgen -f -- "$word"
  )
}
complete -o filenames -F _roux roux
)";

constexpr const char* kZsh = R"(autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
)";

constexpr const char* kFish =
    R"(complete -c roux -a '(roux complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)";

void completion(const std::string& shell, Session& session) {
  std::string text;
  if (shell == "bash") {
    text = kBash;
  } else if (shell == "zsh") {
    text = std::string(kZsh) + kBash;
  } else if (shell == "fish") {
    text = kFish;
  } else {
    return session.fail("there is no completion for \"" + shell + "\"", "the shells are bash, zsh and fish");
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes commands, flags, runs and keys in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  command->footer(
      "\nExamples:\n"
      "  source <(roux completion bash)\n"
      "  roux completion fish > ~/.config/fish/completions/roux.fish\n");
  command->callback([shell, &session] { session.command = [shell, &session] { completion(*shell, session); }; });
}

}  // namespace runner::cli
