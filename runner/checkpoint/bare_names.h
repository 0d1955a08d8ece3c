#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::checkpoint {

/// Names of a source's tensors without what the wrappers of PyTorch put into them: `module.` of DataParallel and
/// DistributedDataParallel and `model._orig_mod.` of a compiled model before all of them, `_orig_mod.` of a compiled
/// block, `_fsdp_wrapped_module.` and `_checkpoint_wrapped_module.` anywhere. Borrows the reader.
class BareNames {
 public:
  /// All names stay as they are where two would become one.
  /// is_needed  whether the model has names that begin so: such a prefix stays
  BareNames(const artifact::SafetensorsReader& reader, const std::function<bool(const std::string&)>& is_needed);
  /// All names stay as they are.
  explicit BareNames(const artifact::SafetensorsReader& reader);

  struct Tensor {
    std::string name;                    ///< bare
    const artifact::TensorBytes* bytes;  ///< with the name in the source
  };
  /// In the order of the source.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// By a bare name; null when there is none.
  const artifact::TensorBytes* find(const std::string& name) const;
  /// By a name in the source, which has it.
  const std::string& bare(const std::string& name) const;
  /// What was taken away, each once: `_orig_mod.`.
  const std::vector<std::string>& taken() const { return taken_; }

 private:
  bool take(const std::function<std::string(const std::string&)>& bare);

  const artifact::SafetensorsReader& reader_;
  std::vector<Tensor> tensors_;
  std::map<std::string, const artifact::TensorBytes*> by_name_;
  std::map<std::string, std::string> bare_of_;
  std::vector<std::string> taken_;
};

}  // namespace runner::checkpoint
