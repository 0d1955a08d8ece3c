#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/result.h"

namespace runner::artifact {

/// How one tensor of A differs from that of the same name in B. Equal means equal bits: -0 is not 0, and a NaN is
/// itself.
struct TensorDifference {
  enum class Kind { kOnlyInA, kOnlyInB, kShape, kDtype, kValues };
  Kind kind = Kind::kValues;
  std::string set;  ///< `model.safetensors`, sharded or not; "" when single files were compared
  std::string name;
  std::string dtype_a, dtype_b;
  std::vector<std::int64_t> shape_a, shape_b;
  // Of kValues, and of kDtype, where elements count as different when their numbers are:
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  std::int64_t without_distance = 0;  ///< of those: a NaN or an infinity on one side, so not in the two below
  double max_abs = 0;                 ///< largest |a - b|
  double max_rel = 0;                 ///< largest |a - b| / max(|a|, |b|)
  std::vector<std::int64_t> first;    ///< index of the first one that differs
  double first_a = 0, first_b = 0;
};

/// A value of trainer.json, or a whole other file.
struct ValueDifference {
  std::string file;
  std::string path;         ///< `counters.step`; "" for the file itself
  std::string a, b;         ///< as JSON; "" if absent
  bool wall_clock = false;  ///< measures time, so it differs in any two runs; does not count as a difference
};

struct Comparison {
  std::vector<TensorDifference> tensors;  ///< by set, then name
  std::vector<ValueDifference> values;
  std::int64_t tensors_compared = 0;  ///< in both
  std::int64_t elements_compared = 0;
  bool same() const;
};

/// Compares the state in two checkpoints: the tensors of every set, trainer.json, other files byte by byte. Not the
/// manifest, which records writer and time. A and B are folders, or both tensors alone (a safetensors file or an index
/// of shards; one of them may then be a folder, of which the model counts).
/// Blocks   while both are read once; at disk speed where they are equal.
/// Failure  a path that is neither, a file that cannot be parsed.
core::Result<Comparison> compare_checkpoints(const std::string& a, const std::string& b);

/// One sentence about the first difference (parameters before optimizer before the rest), nothing when all is equal.
core::Result<std::optional<std::string>> first_difference(const std::string& a, const std::string& b);

/// `h.0.attn.weight[3, 5] of model.safetensors is 0.25 in a and 0.5 in b; 12 of 4096 elements differ, by 0.25 at most`
std::string to_text(const TensorDifference& difference);
std::string to_text(const ValueDifference& difference);

/// `[64, 3]`
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace runner::artifact
