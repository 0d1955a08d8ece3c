#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::store {

/// One operation, range or kernel over all recorded steps; where shapes were recorded, with one set of them.
struct ProfileRow {
  std::string name;         ///< `aten::addmm`, `h.0`, `ProfilerStep*`
  std::string shapes = {};  ///< of its inputs: `[[8, 32], [32, 64], []]`; "" where none were recorded
  bool is_range = false;    ///< a range of the program, not an operation
  bool is_kernel = false;   ///< or a copy; what the GPU ran, which has no time on the CPU
  std::int64_t calls = 0;
  double cpu_us = 0, self_cpu_us = 0;              ///< with, and without, what lies in it
  std::int64_t cpu_bytes = 0, self_cpu_bytes = 0;  ///< taken minus given back
  double cuda_us = 0, self_cuda_us = 0;            ///< of the kernels that it started; of a kernel its own, in both
  std::int64_t cuda_bytes = 0, self_cuda_bytes = 0;
  std::int64_t flops = 0;  ///< estimated; 0 without a formula
};

/// One block of the model over all recorded steps.
struct ProfileBlock {
  std::string name;
  std::int64_t calls = 0;                            ///< forward passes
  double forward_us = 0, backward_us = 0;            ///< backward without the adding up of the parameters' gradients
  double forward_cuda_us = 0, backward_cuda_us = 0;  ///< of the kernels that these started
  std::int64_t kept_bytes = 0;                       ///< what the forward passes left allocated, together
};

/// Growth of tensor memory since the recording began.
struct MemoryPoint {
  double ms = 0;  ///< since then
  std::int64_t bytes = 0;
};

struct ProfileStep {
  std::int64_t step = 0;  ///< that many were made before it
  double us = 0;
  std::int64_t peak_bytes = 0;  ///< the largest MemoryPoint within it; 0 where memory was not recorded
};

/// How a table of rows is laid out.
struct ProfileTable {
  std::string sort_by = "self_cpu_time_total";  ///< a word of the recipe's profiler.sort_by
  std::int64_t row_limit = 30;                  ///< -1: all
  bool group_by_input_shape = false;            ///< false: one line a name
};

/// Aggregates of one cycle of the profiler, stored next to the trace as `STEM.key_averages.json`.
struct Profile {
  std::string trace;  ///< file name of the trace
  bool with_shapes = false, with_memory = false, with_flops = false;
  bool with_cuda = false;  ///< events of the GPU were recorded; steps' peaks and `memory` are the GPU's
  double model_flops = 0;  ///< of the recorded steps: matrix products of the model's blocks, forward and backward
  double peak_flops = 0;   ///< per second, as `roux env --measure` found, or by a GPU's data sheet; 0: not known
  std::string peak_of;     ///< the number format of that peak: `float32`
  std::vector<ProfileRow> rows;
  std::vector<ProfileBlock> blocks;  ///< in the model's order; empty unless recorded
  std::vector<ProfileStep> steps;
  std::vector<MemoryPoint> memory;  ///< thinned out to kMemoryPointsMax, peaks kept; empty unless recorded
  ProfileTable table;               ///< as the recipe asks for it

  static constexpr std::size_t kMemoryPointsMax = 1000;
  double total_us() const;       ///< of the recorded steps
  double total_cuda_us() const;  ///< of all kernels
};

core::Node to_node(const Profile& profile);
/// The Failure names a missing or mistyped field.
core::Result<Profile> profile_from_node(const core::Node& node);
/// Reads `STEM.key_averages.json`.
core::Result<Profile> read_profile(const std::string& path);

/// The rows as torch.profiler's `key_averages().table()` lays them out.
std::string table_text(const Profile& profile, const ProfileTable& table);
/// The text report of a profile: steps, table, blocks, the largest matrix products, achieved versus peak.
std::string profile_text(const Profile& profile, const ProfileTable& table);

}  // namespace runner::store
