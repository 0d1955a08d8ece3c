#include "runner/review/annotate.h"

#include "runner/cli/runs_command.h"

namespace runner::cli {
namespace {

void add_tag(CLI::App& runs, Session& session) {
  const auto tag = std::make_shared<review::RunsTagRequest>();
  CLI::App* command = runs.add_subcommand("tag", "Give a run tags; the filter knows them as tag:NAME");
  command->add_option("RUN", tag->run, kRunText)->required();
  command->add_option("TAG", tag->tags, "One word or more")->required();
  command->footer("\nExamples:\n  roux runs tag last keep baseline\n  roux runs list --filter tag:keep\n");
  on_runs_call<review::RunsTagRequest>(*command, session, tag, review::runs_tag);

  const auto untag = std::make_shared<review::RunsTagRequest>();
  command = runs.add_subcommand("untag", "Take tags from a run");
  command->add_option("RUN", untag->run, kRunText)->required();
  command->add_option("TAG", untag->tags, "Those to take away")->required();
  on_runs_call<review::RunsTagRequest>(*command, session, untag, review::runs_untag);
}

void add_say(CLI::App& runs, Session& session) {
  const auto note = std::make_shared<review::RunsSayRequest>();
  CLI::App* command = runs.add_subcommand("note", "Write something about a run down, with the time");
  command->add_option("RUN", note->run, kRunText)->required();
  command->add_option("TEXT", note->text, "What there is to say; may have several lines")->required();
  command->footer("\nExample:\n  roux runs note last 'diverged: the warm-up was too short'\n");
  on_runs_call<review::RunsSayRequest>(*command, session, note, review::runs_note);

  const auto rename = std::make_shared<review::RunsSayRequest>();
  command = runs.add_subcommand("rename", "Give a run a name of its own; its folder stays");
  command->add_option("RUN", rename->run, kRunText)->required();
  command->add_option("NAME", rename->text, "The name; '' goes back to the recipe's")->required();
  on_runs_call<review::RunsSayRequest>(*command, session, rename, review::runs_rename);
}

void add_set(CLI::App& runs, Session& session, const char* name, const char* text,
             RunsAnswer<review::RunsSetRequest> answer) {
  const auto request = std::make_shared<review::RunsSetRequest>();
  CLI::App* command = runs.add_subcommand(name, text);
  command->add_option("RUN", request->runs, kRunText)->required();
  on_runs_call<review::RunsSetRequest>(*command, session, request, answer);
}

void add_remove(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsRemoveRequest>();
  CLI::App* command = runs.add_subcommand("rm", "Move runs to the trash, from which `restore` brings them back");
  command->add_option("RUN", request->runs, kRunText);
  command->add_flag("--empty-trash", request->empty_trash, "Delete for good what is in the trash");
  command->add_flag("--yes", request->yes, "Do not ask");
  command->footer(
      "\nExamples:\n"
      "  roux runs rm 1qezc2h\n"
      "  roux runs list --trash\n"
      "  roux runs rm --empty-trash\n");
  on_runs_call<review::RunsRemoveRequest>(*command, session, request, review::runs_remove);
}

}  // namespace

void add_runs_keep(CLI::App& runs, Session& session) {
  add_tag(runs, session);
  add_say(runs, session);
  add_set(runs, session, "archive", "Leave runs out of lists; nothing of them is lost", review::runs_archive);
  add_set(runs, session, "unarchive", "Bring archived runs back into the lists", review::runs_unarchive);
  add_remove(runs, session);
  add_set(runs, session, "restore", "Bring runs back from the trash", review::runs_restore);
}

}  // namespace runner::cli
