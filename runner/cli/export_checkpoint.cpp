#include "runner/cli/export_checkpoint.h"

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "generated/section/checkpoint.h"
#include "runner/artifact/base_record.h"
#include "runner/artifact/checkpoint_name.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/provenance/provenance.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/resolve/hub_values.h"
#include "runner/resolve/recipe.h"
#include "runner/review/checkpoint/checkpoints.h"
#include "runner/store/run_reader.h"

namespace runner::cli {

namespace fs = std::filesystem;

pretrained::Exported export_checkpoint(const ExportCheckpoint& request) {
  std::vector<std::string> skipped;
  const std::string checkpoint =
      artifact::find_checkpoint(request.name, review::run_finder(request.runs_dir), skipped).value();
  for (const std::string& line : skipped) std::fprintf(stderr, "skipped %s\n", core::escape_for_terminal(line).c_str());
  const std::string tensors = artifact::find_tensor_set(checkpoint).value();
  artifact::verify_tensor_set(tensors).value();
  const fs::path run = fs::absolute(checkpoint).lexically_normal().parent_path().parent_path();
  const auto summary = store::find_run(request.runs_dir, run.string(), core::system_clock());
  if (!summary) {
    throw core::RunError(checkpoint + " lies in no run, and only the run's recipe says what model it is",
                         "name a run, such as RUN:best", core::kExitUsage);
  }
  pretrained::ExportRequest model{tensors,         summary.value().resolved, {},
                                  request.folder,  request.shard_bytes_max,  request.force,
                                  request.merge,   request.adapter,          request.dtype,
                                  request.quantize};
  model.write = request.write;
  // Sizes that the model took from its data.
  const auto manifest = artifact::read_manifest(checkpoint);
  core::Node* const block = model.resolved.find("model");
  if (manifest && block != nullptr && manifest.value().fields.model_sizes.is_mapping()) {
    for (const auto& size : manifest.value().fields.model_sizes.entries()) block->set(size.key, size.value);
  }
  core::Diagnostics told_by_its_training;
  resolve::locate_hub_values(model.resolved, told_by_its_training);  // its tokenizer is copied
  const std::string capsule = store::branch_file(summary.value().run_dir, artifact::kProvenanceFile);
  if (auto read = artifact::read_provenance(capsule)) model.labels = std::move(read.value().labels);
  model.base = artifact::base_of_checkpoint(checkpoint);
  if (model.base && request.merge) {
    const core::Node* source = model.resolved.at_path("init_from.path");
    model.base->source =
        artifact::find_base(*model.base, source != nullptr && source->is_string() ? source->as_string() : "");
  }
  return pretrained::export_model(model);
}

std::string what(const pretrained::Exported& done) {
  return (done.is_adapter ? "an adapter of a " : "a ") + done.model_type;
}

void print_exported(const pretrained::Exported& done, const std::string& folder) {
  std::printf("exported %s to %s: %lld tensors, %s\n", what(done).c_str(), core::escape_for_terminal(folder).c_str(),
              static_cast<long long>(done.tensors), core::format_bytes(done.bytes).c_str());
  std::printf("  %s\n", core::escape_for_terminal(core::joined(done.files)).c_str());
  if (const auto& error = done.quantization_error)
    std::printf("  quantized weights: a relative error of %.2f %%\n", 100.0 * *error);
  if (done.is_adapter) {
    std::printf("  base model: %s\n", done.base.empty() ? "none named, as the run did not begin from a Transformers "
                                                          "folder; `roux export --merge` writes the whole model"
                                                        : core::escape_for_terminal(done.base).c_str());
  }
  if (done.copied.empty()) {
    std::printf("  no tokenizer: %s\n", done.source.empty()
                                            ? "the recipe has none, and began from no Transformers folder"
                                            : ("none in " + core::escape_for_terminal(done.source)).c_str());
  }
}

std::optional<std::int64_t> shard_bytes(Session& session, const std::string& text) {
  const core::Result<std::int64_t> shard = core::parse_bytes(text);
  if (shard && shard.value() >= 1) return shard.value();
  session.fail("--max-shard-size is " + core::escape_for_terminal(text) + ", not a size", "write it as 500MB or 5GB");
  return std::nullopt;
}

void warn_of_export_folder(const std::string& run_dir) {
  const auto checked = pretrained::check_replaceable(run_dir + "/export");
  if (checked) return;
  core::log_warning("checkpoint.export will be refused at the end: " + checked.failure().message +
                    "; move them away until then");
}

void export_trained(const resolve::Recipe& recipe, const std::string& run_dir) {
  const auto& config = *recipe.checkpoint;
  const std::string name = run_dir + (config.save_best ? ":best" : ":last"), folder = run_dir + "/export";
  try {
    // What an earlier process of this run wrote is replaced.
    const bool merge = *config.export_ == sections::checkpoint::Export::kMerged;
    const pretrained::Exported done =
        export_checkpoint({name, recipe.output_dir, folder, config.max_shard_size, /*force=*/true, merge});
    core::log_info("exported " + what(done) + " to " + folder + ", " + core::format_bytes(done.bytes));
  } catch (const core::RunError& error) {
    throw core::RunError(std::string("checkpoint.export: ") + error.what(),
                         (error.hint().empty() ? "" : error.hint() + "; ") + "the training is complete: `roux export " +
                             name + " DIR` tries again",
                         error.exit_code());
  }
}

}  // namespace runner::cli
