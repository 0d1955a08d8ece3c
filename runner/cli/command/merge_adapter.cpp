#include "runner/pretrained/write/merge_adapter.h"

#include <memory>
#include <string>
#include <vector>

#include "runner/artifact/io/io.h"
#include "runner/cli/commands.h"
#include "runner/cli/export_checkpoint.h"
#include "runner/cli/flags.h"
#include "runner/cli/group/pack_flag.h"
#include "runner/pretrained/dtype.h"

namespace runner::cli {
namespace {

struct MergeFlags {
  std::string adapter, folder, base, base_form, dtype, quantize, shard_size = "5GB";
  std::vector<std::string> more;
  bool force = false;
};

void run_merge(const MergeFlags& flags, Session& session) {
  const auto shard = shard_bytes(session, flags.shard_size);
  if (!shard) return;
  const auto merged = artifact::attempt([&] {
    return pretrained::merge_adapter({flags.adapter, flags.base, flags.folder, pretrained::dtype_word(flags.dtype),
                                      *shard, flags.force, flags.more, pack_form(flags.quantize),
                                      pack_form(flags.base_form)});
  });
  if (!merged) return session.fail(merged.failure().message, merged.failure().hint, merged.failure().exit_code);
  print_exported(merged.value(), flags.folder);
}

}  // namespace

void add_merge_adapter(Command app, Session& session) {
  const auto flags = std::make_shared<MergeFlags>();
  Command command =
      app.add_subcommand("merge-adapter", "Add a PEFT adapter to its base model, as a Transformers folder");
  command.add_option("ADAPTER", flags->adapter, "Folder with adapter_config.json and adapter_model.safetensors")
      .required();
  command.add_option("DIR", flags->folder, "Folder to write").required();
  command
      .add_option("--base", flags->base,
                  "Transformers folder of the base model; by default base_model_name_or_path of the adapter")
      .type_name("FOLDER");
  add_pack_flag(command, "--base-quantized", flags->base_form,
                "How the base was kept when the adapter was trained: add it to what is left of its weights so");
  command.add_option("--adapter", flags->more, "Add this adapter of the same base, too; may be repeated")
      .type_name("DIR")
      .allow_extra_args(false);
  accept_only(command.add_option("--dtype", flags->dtype, "Type of the weights; by default that of the base's files")
                  .type_name("TYPE"),
              {"float32", "bfloat16", "float16"});
  add_pack_flag(command, "--quantize", flags->quantize, "Keep the linear layers in 4 or 8 bits, as bitsandbytes does");
  command.add_option("--max-shard-size", flags->shard_size, "Split the weights into files of this size (5GB)");
  command.add_flag("--force", flags->force, "Replace a folder that roux wrote, as a whole");
  command.footer(
      "\nThe sums are computed in float32. A base that is found by base_model_name_or_path is looked for from the\n"
      "current folder, then from the adapter's. The tokenizer is the adapter's if it has one, else the base's.\n"
      "\nExamples:\n"
      "  roux merge-adapter adapters/summaries merged\n"
      "  roux merge-adapter adapters/summaries merged --adapter adapters/style\n"
      "  roux merge-adapter adapters/summaries merged --base models/SmolLM2-135M --dtype bfloat16\n");
  command.callback([flags, &session] { session.command = [flags, &session] { run_merge(*flags, session); }; });
}

}  // namespace runner::cli
