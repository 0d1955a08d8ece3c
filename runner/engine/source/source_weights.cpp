#include "runner/engine/source/source_weights.h"

#include <filesystem>
#include <system_error>

#include "components/part/linear_term.h"
#include "generated/section/init_from.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/adapter_weights.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"
#include "runner/resolve/rules/rules.h"

namespace runner::engine {

using core::Node;

bool names_foreign_weights(const std::string& checkpoint) {
  std::error_code failed;
  if (!std::filesystem::exists(checkpoint, failed)) return false;
  if (std::filesystem::is_regular_file(checkpoint, failed)) {
    const auto folder = std::filesystem::path(checkpoint).parent_path().string();
    return !artifact::read_manifest(folder.empty() ? "." : folder);
  }
  return !artifact::read_manifest(checkpoint) && !std::filesystem::exists(checkpoint + "/trainer.json", failed);
}

bool load_foreign(const std::string& path, const resolve::Recipe& recipe, const train::Experiment& experiment,
                  core::Diagnostics& diagnostics) {
  resolve::check_tokenizers(recipe.root, path, diagnostics);
  if (diagnostics.has_errors()) return false;
  const components::model::Model& model = *experiment.model;
  sections::init_from::Config config;
  config.path = path;
  Node written = Node::mapping();
  written.set("path", Node::string(path));
  written.set("rename", Node::mapping());
  for (const char* key : {"include", "exclude"}) written.set(key, Node::sequence());
  config.resize_vocab = recipe.init_from->resize_vocab;
  core::Diagnostics found;
  const auto weights = checkpoint::plan_init_from(config, written, recipe.root, model, recipe.output_dir, found);
  if (!weights || weights->left_out.empty()) diagnostics.add_all(found);
  if (!weights) return false;
  if (!weights->left_out.empty()) {
    diagnostics.error({},
                      weights->source + " has no " + core::joined(weights->left_out) +
                          " of this model's size, without which nothing can be said",
                      "name weights that hold all of the model");
    return false;
  }
  checkpoint::load_init_weights(*weights, model, train::weight_access(experiment));
  core::log_info("weights: " + weights->text());
  checkpoint::load_adapters(recipe.adapters, experiment.adapters, model, recipe.model);
  return true;
}

bool load_below_adapter(const std::string& checkpoint, const resolve::Recipe& recipe,
                        const train::Experiment& experiment, core::Diagnostics& diagnostics) {
  const std::string tensors = artifact::find_tensor_set(checkpoint).value();
  const auto reader = artifact::open_tensors(tensors).value();
  for (const artifact::TensorBytes& tensor : reader->tensors()) {
    if (!components::part::is_of_term(tensor.name)) continue;
    diagnostics.error({}, checkpoint + " has adapters of its own, and --adapter names another one",
                      "leave --adapter out, or name the model that the run began from");
    return false;
  }
  return load_foreign(checkpoint, recipe, experiment, diagnostics);
}

}  // namespace runner::engine
