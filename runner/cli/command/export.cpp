#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/artifact/io/io.h"
#include "runner/cli/commands.h"
#include "runner/cli/export_checkpoint.h"
#include "runner/cli/flags.h"
#include "runner/cli/gguf/export_gguf.h"
#include "runner/cli/group/pack_flag.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/gguf/format.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/dtype.h"
#include "runner/pretrained/write/merge_adapter.h"

namespace runner::cli {
namespace {

struct ExportFlags {
  std::string checkpoint, folder, shard_size = "5GB", dtype, type, quantize;
  std::vector<std::string> adapters;
  bool force = false, merge = false;
};

void run_export(const ExportFlags& flags, Session& session) {
  const bool is_gguf = flags.folder.ends_with(gguf::kEnding);
  if (!is_gguf && !flags.type.empty()) {
    return session.fail("--type is of GGUF files, and " + core::escape_for_terminal(flags.folder) + " is a folder",
                        "name a file that ends in .gguf, or write --dtype for the weights in a folder");
  }
  if (is_gguf && !flags.dtype.empty()) {
    return session.fail("--dtype is of folders, and " + core::escape_for_terminal(flags.folder) + " is a GGUF file",
                        "write --type " + gguf::file_type_words());
  }
  if (is_gguf && !flags.quantize.empty()) {
    return session.fail("--quantize is of folders, and " + core::escape_for_terminal(flags.folder) + " is a GGUF file",
                        "write --type " + gguf::file_type_words());
  }
  if (is_gguf) {
    return export_gguf({flags.checkpoint, flags.folder, flags.type.empty() ? "bf16" : flags.type, flags.adapters,
                        flags.force, flags.merge},
                       session);
  }
  const auto shard = shard_bytes(session, flags.shard_size);
  if (!shard) return;
  const std::string first = flags.adapters.empty() ? "" : flags.adapters.front();
  const bool is_folder = !first.empty() && !pretrained::config_of_folder(flags.checkpoint).empty();
  if (!is_folder && flags.adapters.size() > 1) {
    return session.fail(
        "--adapter was given " + std::to_string(flags.adapters.size()) + " times, and of a run one is merged",
        "export the run, and merge the adapters into the folder that this wrote");
  }
  const auto exported = artifact::attempt([&] {
    if (is_folder) {
      return pretrained::merge_adapter({first,
                                        flags.checkpoint,
                                        flags.folder,
                                        pretrained::dtype_word(flags.dtype),
                                        *shard,
                                        flags.force,
                                        {flags.adapters.begin() + 1, flags.adapters.end()},
                                        pack_form(flags.quantize)});
    }
    return export_checkpoint({flags.checkpoint, session.runs_dir(), flags.folder, *shard, flags.force, flags.merge,
                              first, pretrained::dtype_word(flags.dtype), pack_form(flags.quantize)});
  });
  if (!exported) {
    return session.fail(exported.failure().message, exported.failure().hint, exported.failure().exit_code);
  }
  print_exported(exported.value(), flags.folder);
}

std::vector<std::string> gguf_types() {
  std::vector<std::string> words;
  for (const gguf::FileType& type : gguf::file_types()) words.emplace_back(type.word);
  return words;
}

}  // namespace

void add_export(Command app, Session& session) {
  const auto flags = std::make_shared<ExportFlags>();
  Command command =
      app.add_subcommand("export", "Write a trained model as a Transformers folder or a GGUF file, or its adapter");
  command.add_option("CHECKPOINT", flags->checkpoint, "RUN (its last checkpoint), RUN:best, RUN:step-000500, or folder")
      .required();
  command.add_option("DIR", flags->folder, "Folder to write, or FILE.gguf for llama.cpp").required();
  command.add_flag("--merge", flags->merge, "Of a run with adapters: write the model with them, not them alone");
  command
      .add_option("--adapter", flags->adapters,
                  "Merge the adapter of this PEFT folder into the model; of a Transformers folder it may be repeated")
      .type_name("DIR")
      .allow_extra_args(false);
  accept_only(command.add_option("--dtype", flags->dtype, "Type of a folder's weights; by default as they were trained")
                  .type_name("TYPE"),
              {"float32", "bfloat16", "float16"});
  accept_only(command.add_option("--type", flags->type, "Type of a GGUF file's matrices (bf16)").type_name("TYPE"),
              gguf_types());
  add_pack_flag(command, "--quantize", flags->quantize, "Keep the linear layers in 4 or 8 bits, as bitsandbytes does");
  command.add_option("--max-shard-size", flags->shard_size, "Split the weights into files of this size (5GB)");
  command.add_flag("--force", flags->force, "Replace a folder that roux wrote, as a whole");
  command.footer(
      "\nWrites config.json, the weights under Transformers' names, generation_config.json, and the tokenizer's\n"
      "files of the folder that the run began from. gpt becomes gpt2; llama becomes llama, mistral or qwen2.\n"
      "Of a run with adapters it writes PEFT's adapter_config.json and adapter_model.safetensors.\n"
      "With --quantize Transformers needs bitsandbytes to read the folder; `init_from` reads it, too.\n"
      "A GGUF file holds a gpt2, llama, mistral, qwen2 or qwen3 with its tokenizer and chat template; CHECKPOINT may\n"
      "be a Transformers folder then.\n"
      "\nExamples:\n"
      "  roux export last exported\n"
      "  roux export my-llama:best exported --max-shard-size 2GB\n"
      "  roux export my-lora adapter\n"
      "  roux export my-lora merged --merge --dtype bfloat16\n"
      "  roux export my-lora small --merge --quantize nf4-double\n"
      "  roux export my-llama my-llama.gguf --type q8_0\n"
      "  roux export models/SmolLM2-135M smollm2.gguf\n");
  command.callback([flags, &session] { session.command = [flags, &session] { run_export(*flags, session); }; });
}

}  // namespace runner::cli
