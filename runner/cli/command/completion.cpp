#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"

namespace runner::cli {
namespace {

// The scripts ask the program itself, so they know its runs and never become outdated. They add files, except to keys
// and their known values.

// bash splits `a=b` and `a:b` into three words, and inserts only what follows the last `=` or `:`. `KEY=` must get
// neither a blank behind it nor the backslash that `filenames` would put before the `=`.
constexpr const char* kBash = R"(_roux() {
  local i last reply keys="" values="" words=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    last="${COMP_WORDS[i]}"
    if [[ ${#words[@]} -gt 0 && -n "$last" && ("$last" =~ ^[=:]+$ || "${COMP_WORDS[i-1]}" =~ ^[=:]+$) ]]; then
      words[-1]+="$last"
    else
      words+=("$last")
    fi
  done
  [[ "$last" =~ ^[=:]+$ ]] && last=
  COMPREPLY=()
  while IFS= read -r reply; do
    [[ "$reply" == *= ]] && keys=1
    [[ "$reply" == *=?* ]] && values=1
    COMPREPLY+=("${reply#"${words[-1]%"$last"}"}")
  done < <(roux complete "${words[@]}" 2>/dev/null)
  if [[ -n "$keys" ]]; then
    compopt +o filenames -o nospace
    return
  fi
  [[ $COMP_CWORD -gt 1 && -z "$values" ]] && while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen -f -- "$last")
}
complete -o filenames -F _roux roux
)";

constexpr const char* kZsh = R"(autoload -U +X compinit && compinit
_roux() {
  local -a found
  found=("${(@f)$(roux complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  found=("${(@)found:#}")
  compadd -S '' -- "${(@M)found:#*=}"
  compadd -- "${(@)found:#*=}"
  if [[ $CURRENT -gt 2 && -z "${(M)found:#*=*}" ]]; then
    compset -P '*='
    _files
  fi
}
compdef _roux roux
)";

constexpr const char* kFish =
    R"(complete -c roux -a '(roux complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)";

void completion(const std::string& shell) {
  std::fputs(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish, stdout);
}

}  // namespace

void add_completion(Command app, Session& session) {
  const auto shell = std::make_shared<std::string>();
  Command command =
      app.add_subcommand("completion", "Print a shell script that completes commands, flags, runs and keys");
  accept_only(command.add_option("SHELL", *shell, "Shell: bash, zsh, fish").required(), {"bash", "zsh", "fish"});
  command.footer(
      "\nExamples:\n"
      "  source <(roux completion bash)\n"
      "  roux completion fish > ~/.config/fish/completions/roux.fish\n");
  command.callback([shell, &session] { session.command = [shell] { completion(*shell); }; });
}

}  // namespace runner::cli
