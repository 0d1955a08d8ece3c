#pragma once

#include <map>
#include <set>
#include <string>

// Who may include whom. docs/architecture.md draws it. An arrow that no file needs is an error too, so that this page
// stays the truth.

using Names = std::set<std::string>;

/// By layer: the layers that its files may include.
inline const std::map<std::string, Names>& layer_arrows() {
  static const std::map<std::string, Names> arrows = {
      {"core", {}},
      {"recipe", {"core"}},
      {"registry", {"core", "recipe"}},
      {"pretrained", {"core", "recipe", "artifact"}},
      {"words", {"core"}},
      {"net", {"core"}},
      {"hub", {"core", "recipe", "net"}},
      {"resolve", {"core", "recipe", "registry", "pretrained", "hub", "tokenizer", "words"}},
      {"store", {"core", "recipe"}},
      {"artifact", {"core"}},
      {"query", {"core", "recipe", "store"}},
      {"trackers", {"core", "store", "net"}},
      {"sampler", {"core"}},
      {"pruner", {"core"}},
      {"tokenizer", {"core", "template"}},
      {"template", {"core"}},
      {"launch", {"core"}},
      {"sweep", {"core", "recipe", "registry", "resolve", "store", "artifact", "sampler", "pruner", "launch"}},
      {"terminal", {"core"}},
      {"chart", {"core", "terminal"}},
      {"review", {"core", "recipe", "store", "artifact", "query", "trackers", "sweep", "terminal", "chart"}},
      {"transfer", {"core", "recipe", "store", "trackers", "sweep", "review"}},
      {"cli",  // and runner/engine/engine.h, runner/cuda/cuda.h
       {"core", "recipe", "registry", "pretrained", "resolve", "store", "artifact", "query", "trackers", "launch",
        "sweep", "terminal", "chart", "review", "transfer", "tokenizer", "hub", "words"}},
      {"cuda", {"core"}},
      {"arrow", {"core"}},
      {"kernels", {}},
      {"distributed", {"core"}},
      {"components", {"core", "kernels", "pretrained", "tokenizer"}},
      {"checkpoint", {"core", "store", "artifact", "pretrained", "hub", "components"}},
      {"train", {"core", "registry", "resolve", "store", "artifact", "components", "checkpoint", "distributed"}},
      {"engine",
       {"core", "recipe", "registry", "resolve", "store", "artifact", "components", "checkpoint", "distributed",
        "train", "tokenizer"}},
      {"schema_gen", {"core", "recipe", "registry"}},
      {"include", {"core", "components", "sampler", "pruner", "tokenizer", "trackers"}},  // what is installed
  };
  return arrows;
}

/// By folder: the other folders of its own layer that its files may include. A folder that is not here includes none.
inline const std::map<std::string, Names>& folder_arrows() {
  static const std::map<std::string, Names> arrows = {
      {"runner/core", {"runner/core/text"}},
      {"runner/core/language", {"runner/core", "runner/core/text"}},
      {"runner/core/picture", {"runner/core", "runner/core/text"}},
      {"runner/core/packed", {}},
      {"runner/core/platform", {"runner/core", "runner/core/text", "runner/core/packed"}},
      {"runner/core/table", {"runner/core", "runner/core/platform", "runner/core/text"}},
      {"runner/registry/reference", {"runner/registry"}},
      {"runner/pretrained/write", {"runner/pretrained"}},
      {"runner/resolve", {"runner/resolve/rules", "runner/resolve/sharding"}},
      {"runner/store", {"runner/store/database"}},
      {"runner/store/feed", {"runner/store", "runner/store/database"}},
      {"runner/artifact", {"runner/artifact/io", "runner/artifact/foreign"}},
      {"runner/artifact/provenance", {"runner/artifact/io"}},
      {"runner/sweep/study", {"runner/sweep/spec"}},
      {"runner/sweep/analysis", {"runner/sweep/spec", "runner/sweep/study"}},
      {"runner/sweep/trial", {"runner/sweep/spec", "runner/sweep/study"}},
      {"runner/sweep", {"runner/sweep/spec", "runner/sweep/study", "runner/sweep/analysis", "runner/sweep/trial"}},
      {"runner/review/checkpoint", {"runner/review"}},
      {"runner/review/compare", {"runner/review"}},
      {"runner/review/sweep", {"runner/review"}},
      {"runner/cli", {"runner/cli/parser", "runner/cli/hub"}},
      {"runner/cli/prediction", {"runner/cli"}},
      {"runner/cli/generation", {"runner/cli", "runner/cli/prediction"}},
      {"runner/cli/group", {"runner/cli"}},
      {"runner/cli/group/import", {"runner/cli/group/import/launch"}},
      {"runner/cli/explain", {"runner/cli"}},
      {"runner/cli/proof", {"runner/cli"}},
      {"runner/cli/command/checkpoints", {"runner/cli", "runner/cli/group"}},
      {"runner/cli/command/config",
       {"runner/cli", "runner/cli/group", "runner/cli/group/import", "runner/cli/group/import/launch"}},
      {"runner/cli/command/data", {"runner/cli", "runner/cli/data"}},
      {"runner/cli/command/examples", {"runner/cli", "runner/cli/group"}},
      {"runner/cli/command/runs", {"runner/cli/group"}},
      {"runner/cli/command/sweep", {"runner/cli", "runner/cli/group"}},
      {"runner/cli/command/tokenizer", {"runner/cli", "runner/cli/group"}},
      {"runner/cli/command",
       {"runner/cli", "runner/cli/draft", "runner/cli/explain", "runner/cli/generation", "runner/cli/group",
        "runner/cli/hub", "runner/cli/prediction", "runner/cli/proof"}},
      {"runner/cli/draft", {"runner/cli", "runner/cli/group/import"}},
      {"runner/engine", {"runner/engine/source", "runner/engine/texts"}},
      {"runner/train/experiment", {"runner/train/data"}},
      {"runner/train/experiment/memory", {"runner/train/data", "runner/train/experiment"}},
      {"runner/train/strategy", {"runner/train/experiment"}},
      {"runner/train/step", {"runner/train/data", "runner/train/experiment"}},
      {"runner/train/observe", {"runner/train/data", "runner/train/experiment", "runner/train/step"}},
      {"runner/train/reference",
       {"runner/train/data", "runner/train/experiment", "runner/train/step", "runner/train/observe"}},
      {"runner/train/save", {"runner/train/experiment", "runner/train/step", "runner/train/observe"}},
      {"runner/train",
       {"runner/train/experiment", "runner/train/strategy", "runner/train/step", "runner/train/observe",
        "runner/train/save", "runner/train/reference", "runner/train/experiment/memory"}},
      {"trackers/server", {"trackers/io"}},
      {"trackers", {"trackers/io", "trackers/server"}},
      {"components/kernels/images", {"components/kernels"}},
      {"components/sampler", {"components/sampler/math"}},
      {"components/template",
       {"components/template/machine", "components/template/syntax", "components/template/value"}},
      {"components/template/library", {"components/template/machine"}},
      {"components/template/machine", {"components/template/syntax", "components/template/value"}},
      {"components/template/syntax", {"components/template/value"}},
      {"components/tokenizer", {"components/tokenizer/model", "components/tokenizer/text"}},
      {"components/tokenizer/chat", {"components/tokenizer"}},
      {"components/tokenizer/model", {"components/tokenizer/text"}},
      {"components/part", {"components/tensor", "components/ops"}},
      {"components/part/fused", {"components/tensor", "components/ops", "components/part"}},
      {"components/part/cached", {"components/tensor", "components/ops", "components/part", "components/part/fused"}},
      {"components/block", {"components/tensor", "components/part"}},
      {"components/ops", {"components/tensor"}},
      {"components/data", {"components/tensor"}},
      {"components/data/mix", {"components/tensor", "components/data"}},
      {"components/data/label", {"components/tensor", "components/data", "components/data/mix"}},
      {"components/data/csv", {"components/data"}},
      {"components/data/fields", {"components/data"}},
      {"components/data/record",
       {"components/tensor", "components/data", "components/data/csv", "components/data/label",
        "components/data/fields"}},
      {"components/data/language",
       {"components/tensor", "components/data", "components/data/label", "components/data/record",
        "components/data/fields"}},
      {"components/transform", {"components/tensor"}},
      {"components/metric", {"components/tensor"}},
      {"components/metric/text", {"components/metric"}},
      {"components/optimizer", {"components/tensor", "components/ops"}},
      {"components/loss/rows", {"components/tensor"}},
      {"components/loss", {"components/tensor", "components/ops", "components/loss/rows"}},
      {"components/layer", {"components/tensor", "components/ops", "components/part", "components/block"}},
      {"components/model",
       {"components/tensor", "components/ops", "components/part", "components/part/cached", "components/part/fused",
        "components/block", "components/layer"}},
      {"components/adapter",
       {"components/tensor", "components/ops", "components/part", "components/part/cached", "components/part/fused",
        "components/model"}},
      {"components/generation",
       {"components/tensor", "components/block", "components/part/cached", "components/model"}},
      {"components/callback",
       {"components/tensor", "components/data", "components/loss", "components/model", "components/generation"}},
  };
  return arrows;
}

/// Layers that use LibTorch.
inline const Names kWithTorch = {"cuda", "distributed", "components", "checkpoint", "train", "engine", "tests"};

/// Layers that know a component by its kind's interface only.
inline const Names kInterfacesOnly = {"checkpoint", "train", "engine"};

/// Of components/, beside each kind's interface: what those layers may include, by folder or by file.
inline const Names kOpenToRunner = {"components/tensor",
                                    "components/block/block.h",
                                    "components/part/weight.h",
                                    "components/part/linear.h",
                                    "components/part/linear_term.h",
                                    "components/ops/kernel_policy.h",
                                    "components/ops/matmul.h",
                                    "components/generation",
                                    "components/tokenizer/chat",
                                    "components/data/stream.h",
                                    "components/data/field_count.h",
                                    "components/data/label/sample_classes.h",
                                    "components/data/text_bytes.h",
                                    "components/data/language/first_records.h"};
