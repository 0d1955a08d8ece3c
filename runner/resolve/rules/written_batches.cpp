#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "runner/core/text/text.h"
#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

using core::Node;

constexpr const char* kCounted = "eval.counted_batch_size";
constexpr const char* kMaxBatches = "eval.max_batches";
constexpr const char* kNorms = "weight_averaging.bn_batch_size";
constexpr const char* kEvalMicro = "eval.micro_batch_size";
constexpr const char* kGlobal = "training.global_batch_size";
constexpr const char* kMicro = "training.micro_batch_size";
constexpr const char* kRecorded = "recorded with the run";
constexpr const char* kOfMicroBatches = "an earlier version took the micro-batches";

bool was_refused(const SettledTree& tree) {
  for (const char* path : {"training", "eval", "loader", "launch", kEvalMicro, kGlobal, kMicro, kCounted, kNorms}) {
    if (tree.was_refused(path)) return true;
  }
  return false;
}

/// The first of these that the recipe writes.
void take_written(SettledTree& tree, const char* path, std::initializer_list<const char*> sizes) {
  for (const char* from : sizes) {
    const std::optional<std::int64_t> size = tree.integer(from);
    if (size && tree.written(from)) return tree.fill(path, Node::integer(*size), std::string("follows ") + from);
  }
}

/// Samples of a training's forward pass in one process. Nothing where batch_algebra has found an error.
std::optional<std::int64_t> rank_micro_batch(const SettledTree& tree) {
  const std::int64_t parts =
      tree.is_true("loader.split_batches") ? tree.integer("launch.num_processes").value_or(1) : 1;
  const std::optional<std::int64_t> micro = tree.integer(kMicro);
  if (!micro || *micro < parts) return std::nullopt;
  return *micro / parts;
}

}  // namespace

void counted_batch(SettledTree& tree) {
  if (was_refused(tree) || tree.integer(kCounted)) return;
  const auto& recording = tree.recording();
  if (!recording) return take_written(tree, kCounted, {kEvalMicro, kGlobal, kMicro});
  if (recording->counted_batch_size)
    return tree.fill(kCounted, Node::integer(*recording->counted_batch_size), kRecorded);
  const std::optional<std::int64_t> own = tree.integer(kEvalMicro), size = own ? own : rank_micro_batch(tree);
  if (!size) return;
  tree.fill(kCounted, Node::integer(*size), kOfMicroBatches);
  if (!tree.integer(kMaxBatches)) return;
  tree.notice(kMaxBatches,
              "the run was recorded by an earlier roux: eval.max_batches counts its micro-batches of " +
                  core::counted(*size, "sample", "samples"),
              "eval.counted_batch_size sets what it counts");
}

void bn_batch(SettledTree& tree) {
  if (was_refused(tree) || tree.text("weight_averaging.type") != "swa") return;
  if (tree.integer(kNorms) || !tree.is_true("weight_averaging.update_bn")) return;
  const auto& recording = tree.recording();
  if (!recording) return take_written(tree, kNorms, {kGlobal, kMicro});
  if (recording->bn_batch_size) return tree.fill(kNorms, Node::integer(*recording->bn_batch_size), kRecorded);
  if (const auto size = rank_micro_batch(tree)) tree.fill(kNorms, Node::integer(*size), kOfMicroBatches);
}

}  // namespace runner::resolve
