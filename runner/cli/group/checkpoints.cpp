#include "runner/cli/group/checkpoints.h"

#include "runner/cli/flags.h"
#include "runner/core/clock.h"

namespace runner::cli {

void add_folder_command(Command group, Session& session, const char* name, const char* title,
                        void (*action)(const std::string& folder, const std::string& format, Session& session)) {
  struct Flags {
    std::string run = "last", format = "text";
  };
  const auto flags = std::make_shared<Flags>();
  Command command = group.add_subcommand(name, title);
  command.add_option("RUN", flags->run,
                     "Run: id or a prefix of it, name, folder, or `last` (default); or a folder of checkpoints");
  add_format(command, flags->format, {"text", "json"});
  command.footer(std::string("\nExamples:\n  roux checkpoints ") + name + " last\n  roux checkpoints " + name +
                 " runs/tiny-gpt-1a2b/checkpoints/step-000500\n");
  command.callback([flags, action, &session] {
    session.command = [flags, action, &session] {
      const auto folder = review::checkpoints_folder(session.runs_dir(), flags->run, core::system_clock());
      if (!folder) return session.fail(folder.failure().message, folder.failure().hint);
      action(folder.value(), flags->format, session);
    };
  });
}

Command add_keep_command(Command group, const char* name, const char* title, review::KeepRequest& request,
                         const std::string& more_examples) {
  Command command = group.add_subcommand(name, title);
  command
      .add_option("CHECKPOINT", request.checkpoints,
                  "Checkpoint: step-000500, 500, best or last of --run; a path; or RUN:best, RUN:last, RUN:500")
      .required();
  command
      .add_option("--run", request.run,
                  "Run whose checkpoints to use: id or a prefix of it, name, folder, or `last` (default)")
      .type_name("RUN");
  command.footer(std::string("\nExamples:\n  roux checkpoints ") + name + " step-000500\n  roux checkpoints " + name +
                 " best --run tiny-gpt\n" + more_examples);
  return command;
}

void print_answer(const core::Result<std::string>& answer, Session& session) {
  if (!answer) return session.fail(answer.failure().message, answer.failure().hint, answer.failure().exit_code);
  std::fputs(answer.value().c_str(), stdout);
}

}  // namespace runner::cli
