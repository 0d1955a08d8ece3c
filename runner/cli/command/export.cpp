#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/artifact/io/io.h"
#include "runner/cli/commands.h"
#include "runner/cli/export_checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/pretrained/export.h"

namespace runner::cli {
namespace {

struct ExportFlags {
  std::string checkpoint, folder, shard_size = "5GB";
  bool force = false;
};

void run_export(const ExportFlags& flags, Session& session) {
  const core::Result<std::int64_t> shard = core::parse_bytes(flags.shard_size);
  if (!shard || shard.value() < 1) {
    return session.fail("--max-shard-size is " + core::escape_for_terminal(flags.shard_size) + ", not a size",
                        "write it as 500MB or 5GB");
  }
  const auto exported = artifact::attempt([&] {
    return export_checkpoint({flags.checkpoint, session.runs_dir(), flags.folder, shard.value(), flags.force});
  });
  if (!exported) {
    return session.fail(exported.failure().message, exported.failure().hint, exported.failure().exit_code);
  }
  const pretrained::Exported& done = exported.value();
  std::printf("exported a %s to %s: %lld tensors, %s\n", done.model_type.c_str(),
              core::escape_for_terminal(flags.folder).c_str(), static_cast<long long>(done.tensors),
              core::format_bytes(done.bytes).c_str());
  std::printf("  %s\n", core::escape_for_terminal(core::joined(done.files)).c_str());
  if (done.copied.empty()) {
    std::printf("  no tokenizer: %s\n", done.source.empty()
                                            ? "the model was not begun from a Transformers folder"
                                            : ("none in " + core::escape_for_terminal(done.source)).c_str());
  }
}

}  // namespace

void add_export(Command app, Session& session) {
  const auto flags = std::make_shared<ExportFlags>();
  Command command = app.add_subcommand("export", "Write a trained model as a Transformers folder");
  command.add_option("CHECKPOINT", flags->checkpoint, "RUN (its last checkpoint), RUN:best, RUN:step-000500, or folder")
      .required();
  command.add_option("DIR", flags->folder, "Folder to write").required();
  command.add_option("--max-shard-size", flags->shard_size, "Split the weights into files of this size (5GB)");
  command.add_flag("--force", flags->force, "Replace files in a folder that is not empty");
  command.footer(
      "\nWrites config.json, the weights under Transformers' names, generation_config.json, and the tokenizer's\n"
      "files of the folder that the run began from. gpt becomes gpt2; llama becomes llama, mistral or qwen2.\n"
      "\nExamples:\n"
      "  roux export last exported\n"
      "  roux export my-llama:best exported --max-shard-size 2GB\n");
  command.callback([flags, &session] { session.command = [flags, &session] { run_export(*flags, session); }; });
}

}  // namespace runner::cli
