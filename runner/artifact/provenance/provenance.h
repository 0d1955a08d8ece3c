#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runner/artifact/provenance/git_state.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

inline constexpr const char* kProvenanceFile = "capsule.json";

inline constexpr const char* kInitFromSet = "init_from";  ///< of the files with the weights that a run began with

/// One file of a data set or of initial weights, as it was when the run began.
struct DataFile {
  std::string set;   ///< `train`, `val`, or kInitFromSet
  std::string path;  ///< as in the recipe or its expanded glob
  std::int64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  std::string checksum;  ///< `xxh128:...`; "" until it has been read
};

/// The provenance of a run in addition to its recipe: everything that can change the results of the same recipe, and
/// its origin.
struct Provenance {
  std::string version, source, libtorch;  ///< of the program, a hash of its source, LibTorch's
  std::string cpu, cpu_capability;
  int threads = 1;
  std::int64_t total_steps = 0;                    ///< of the training, with which schedules were settled; 0: unknown
  std::map<std::string, std::string> environment;  ///< arithmetic_environment() and what `capture.environment` asks for
  std::string folder;                              ///< working directory: paths are relative to it
  std::string recipe;                              ///< path of the recipe as given
  std::vector<std::string> command_line;
  std::vector<DataFile> data;
  std::string build;  ///< compiler and kind of build; "" in capsules of before it was recorded, as all that follows
  std::string host;
  int cores = 0;
  std::int64_t memory_bytes = 0;
  core::Node code;                  ///< GitState::to_node(); null if not recorded
  std::vector<std::string> labels;  ///< names of the classes that the model's head tells; empty where it tells none

  core::Node to_node() const;
};

/// Failure when the file is missing, damaged or of a newer version.
core::Result<Provenance> read_provenance(const std::string& path);

/// Set variables of this process that affect the arithmetic (threads, instruction sets).
std::map<std::string, std::string> arithmetic_environment();
/// Variables of this process that are always recorded, and those that match one of the shell patterns. The value of one
/// whose name looks like a secret is kHiddenValue, and so is what looks like one in the others.
std::map<std::string, std::string> chosen_environment(const std::vector<std::string>& patterns);

/// Size and time of one file. Failure names the path.
core::Result<DataFile> stat_data_file(const std::string& set, const std::string& path);
/// Including its checksum. Blocks while reading, until `stop` is set (then the checksum stays empty).
core::Result<DataFile> read_data_file(const std::string& set, const std::string& path,
                                      const std::atomic<bool>* stop = nullptr);

/// Differences between two provenances that can cause other results: `launch.num_cpu_threads_per_process`, `2`, `1`,
/// ...
struct Cause {
  std::string what, before, after;
};
/// Data files are compared by content, or by size and time if the content was not read.
std::vector<Cause> list_causes(const Provenance& before, const Provenance& after);

}  // namespace runner::artifact
