#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace runner::train {

/// A parameter by its name in the tree of modules: `blocks.0.up.weight`.
struct FlatMember {
  std::string name;
  std::int64_t elements = 0;
};

/// Which modules FSDP makes units of, beside the whole model.
struct FlatWrapping {
  enum class Policy {
    kNone,     ///< NO_WRAP
    kSize,     ///< SIZE_BASED_WRAP: from the leaves on, what has `min_elements` that are in no other unit
    kModules,  ///< TRANSFORMER_BASED_WRAP: `modules`
  };
  Policy policy = Policy::kNone;
  std::int64_t min_elements = 0;
  std::set<std::string> modules;  ///< paths of the modules of the classes to wrap
};

struct FlatSharding {
  int processes = 1;          ///< that share a flat parameter
  bool shards = true;         ///< false: NO_SHARD, each of them has all of it
  std::int64_t align_to = 0;  ///< elements at which each parameter begins (`use_orig_params`); 0: none are left out
  std::int64_t own(std::int64_t elements) const {  ///< of each process, with padding
    return shards ? (elements + processes - 1) / processes : elements;
  }
};

/// One flat parameter.
struct FlatUnit {
  std::string path;                   ///< of the module; "" is the model
  std::vector<std::size_t> members;   ///< positions of its parameters
  std::int64_t elements = 0;          ///< with what aligns them, before padding to a multiple of the processes
  std::int64_t own_elements = 0;      ///< of each process
  std::vector<std::int64_t> padding;  ///< by process, at the end of its own
};

/// What torch's FullyShardedDataParallel (FSDP 1) joins and pads, in the order of the modules, the model first. A
/// unit of no parameters is left out. Modules are known by the names of `members`, which are in the model's order;
/// those that hold numbered ones alone are a ModuleList, which no size makes a unit.
///
/// Source  torch.distributed.fsdp 2.11
std::vector<FlatUnit> flat_units(const std::vector<FlatMember>& members, const FlatWrapping& wrapping,
                                 const FlatSharding& sharding);

/// Elements in 16 bytes, which is where `use_orig_params` lets parameters begin.
inline constexpr std::int64_t kFlatAlignmentBytes = 16;

}  // namespace runner::train
