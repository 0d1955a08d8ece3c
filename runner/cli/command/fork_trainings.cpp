#include <cstdlib>
#include <future>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/group/git_state_of.h"
#include "runner/cli/program.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/resolve/load.h"
#include "runner/store/in_memory_run.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::cli {
namespace {

std::size_t thread_count() { return core::list_folder("/proc/self/task").value().size(); }

/// Determines what all trials share before the first is forked.
class Forks final : public sweep::TrialRunner {
 public:
  explicit Forks(std::string program) : program_(std::move(program)) {}

  void before_fork(const std::vector<std::string>& words) override {
    if (is_ready_ || words.front() != "run") return;
    is_ready_ = true;
    core::Diagnostics told_by_the_trial;
    const auto recipe = resolve::read_recipe(words.at(1), {}, registry::Registry::builtin(), told_by_the_trial);
    if (recipe && !told_by_the_trial.has_errors()) code_ = git_state_of(*recipe);
  }

  int train(const std::vector<std::string>& words) override {
    std::vector<std::string> command_line = {program_};
    command_line.insert(command_line.end(), words.begin(), words.end());
    return run_program(command_line, {code_, nullptr, nullptr, light_});
  }

 private:
  std::string program_;
  bool is_ready_ = false;
  std::shared_future<artifact::GitState> code_;
  const std::shared_ptr<store::InMemoryRun> light_ = std::make_shared<store::InMemoryRun>();
};

}  // namespace

// Internal. A worker of a sweep starts it once, so that trials do not load the engine each.
void add_fork_trainings(Command app, Session& session) {
  auto descriptor = std::make_shared<int>(-1);
  Command command = app.add_subcommand("fork-trainings", "").group("");
  command.add_option("descriptor", *descriptor, "").required();
  command.callback([&session, descriptor] {
    session.command = [&session, descriptor] {
      unsetenv(sweep::kBindNow);  // of this process only
      engine::Engine* engine = engine_or_fail(session);
      if (engine == nullptr) return;
      engine->warm_up();
      RUNNER_ASSERT(thread_count() == 1, "a fork has the thread that forks, and locks of the others");
      Forks forks(session.command_line.front());
      sweep::serve_trainings(*descriptor, forks);
    };
  });
}

}  // namespace runner::cli
