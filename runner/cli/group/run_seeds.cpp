#include "runner/cli/group/run_seeds.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/end_signals.h"
#include "runner/core/error.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

volatile std::sig_atomic_t child_of_signals = 0;

/// The run under way decides what a signal means. A terminal sends its own to both.
void pass_on(int signal) {
  if (signal != SIGINT && child_of_signals > 0) kill(static_cast<pid_t>(child_of_signals), signal);
}

/// Nothing, and the session failed, where the words are no seeds.
std::vector<std::int64_t> seeds_of(Session& session, const std::string& text) {
  std::vector<std::int64_t> seeds;
  std::string_view rest = text;
  while (true) {
    const std::string_view word = core::trimmed(rest.substr(0, rest.find(',')));
    std::int64_t seed = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seed);
    if (error != std::errc() || end != word.data() + word.size() || seed < 0) {
      session.fail("--seeds takes whole numbers, got " + core::in_quotes(word), "write --seeds 1,2,3");
      return {};
    }
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end()) {
      session.fail("--seeds names " + std::to_string(seed) + " twice", "name each seed once");
      return {};
    }
    seeds.push_back(seed);
    if (rest.find(',') == std::string_view::npos) return seeds;
    rest.remove_prefix(rest.find(',') + 1);
  }
}

/// The command without --seeds.
std::vector<std::string> words_without_seeds(const Session& session) {
  std::vector<std::string> words = {core::own_program()};
  for (std::size_t i = 1; i < session.command_line.size(); ++i) {
    const std::string& word = session.command_line[i];
    if (word.starts_with("--seeds=")) continue;
    if (word == "--seeds") {
      ++i;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

/// The exit status of a program that shares this one's terminal.
int status_of(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw core::RunError("cannot start a process for a run", "free some memory or processes");
  if (child == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  child_of_signals = child;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child_of_signals = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Repetition {
  std::string seed, name;
  bool is_done = false;
};

/// Whether this recipe has been trained under this name.
bool has_finished(const resolve::Recipe& recipe, const std::vector<store::RunSummary>& runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const store::RunSummary& run) {
    if (run.name != recipe.run_name || run.status != store::RunStatus::kFinished || run.smoke) return false;
    const core::Node* device = run.resolved.find("device");
    resolve::Recipe same = recipe;
    if (same.device == "auto" && device != nullptr) same.settle_device(device->scalar_text());
    return same.hash() == run.recipe_hash;
  });
}

}  // namespace

void run_seeds(Session& session, const RunFlags& flags) {
  const std::vector<std::int64_t> seeds = seeds_of(session, flags.seeds);
  if (seeds.empty()) return;
  for (const auto& [value, flag] :
       {std::pair{flags.checkpoint, "--checkpoint"}, {flags.summary_json, "--summary-json"}}) {
    if (!value.empty())
      return session.fail(std::string(flag) + " is of one run, and --seeds makes several", "leave one of the two out");
  }
  session.hub = HubUse::kAll;
  const auto options = session.changes(flags.recipe);
  if (!options) return;
  std::vector<Repetition> repetitions;
  for (const std::int64_t seed : seeds) {
    const auto named = session.load(flags.recipe.path, *options);
    if (!named) return;
    Repetition one{std::to_string(seed), named->run_name + "-seed" + std::to_string(seed)};
    recipe::ComposeOptions own = *options;
    own.overrides.push_back({recipe::Override::Kind::kSet, "seed=" + one.seed, "--seeds " + flags.seeds});
    own.overrides.push_back({recipe::Override::Kind::kSet, "run_name=" + one.name, "--seeds " + flags.seeds});
    const auto recipe = session.load(flags.recipe.path, own);
    if (!recipe) return;
    const auto runs = store::list_runs(recipe->output_dir, core::system_clock());
    one.is_done = !flags.start_new && !flags.smoke && has_finished(*recipe, runs);
    repetitions.push_back(std::move(one));
  }
  core::handle_end_signals(pass_on, {.flags = SA_RESTART});
  std::vector<std::string> compare = {core::own_program(), "runs", "groups"};
  for (const Repetition& one : repetitions) {
    compare.push_back(one.name);
    if (!session.quiet)
      std::printf("%s%s\n", core::escape_for_terminal(one.name).c_str(), one.is_done ? ": trained before" : "");
    if (one.is_done) continue;
    std::vector<std::string> words = words_without_seeds(session);
    words.insert(words.end(), {"--set", "seed=" + one.seed, "--set", "run_name=" + one.name});
    session.exit_code = status_of(words);
    if (session.exit_code != core::kExitDone) return;
  }
  if (session.quiet || flags.smoke) return;
  if (!session.output_dir.empty()) compare.insert(compare.end(), {"--output-dir", session.output_dir});
  status_of(compare);
}

}  // namespace runner::cli
