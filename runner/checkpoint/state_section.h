#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runner/checkpoint/tensor_file.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace runner::checkpoint {

/// What one stateful part saves: values for its section of trainer.json, tensors for `<name>.safetensors`.
class SectionWriter final : public core::StateWriter {
 public:
  /// `download` as in TensorFile.
  explicit SectionWriter(const std::string& name, components::Download* download = nullptr)
      : tensors_(name + ".safetensors", download) {}
  void value(std::string_view name, core::Node value) override;
  void tensor(std::string_view name, const at::Tensor& tensor) override;

  bool empty() const { return values_.entries().empty() && tensors_.empty(); }
  const core::Node& values() const { return values_; }
  const TensorFile& tensors() const { return tensors_; }
  TensorFile take_tensors() && { return std::move(tensors_); }

 private:
  core::Node values_ = core::Node::mapping();
  TensorFile tensors_;
};

/// The same for loading, from the checkpoint `folder` and the section in trainer.json. `prefetched` as in TensorSource.
class SectionReader final : public core::StateReader {
 public:
  SectionReader(const std::string& folder, const std::string& name, core::Node values, CheckpointPrefetch* prefetched);
  const core::Node& value(std::string_view name) const override;
  bool has(std::string_view name) const override;
  at::Tensor tensor(std::string_view name) const override;

 private:
  std::string context_;  ///< for messages
  core::Node values_;
  std::unique_ptr<TensorSource> tensors_;  ///< null when there is no such file
};

/// JSON has no NaN and no infinity: they become {"$number": "nan"}, to be read back as numbers.
core::Node with_marked_numbers(const core::Node& node);
core::Node with_plain_numbers(const core::Node& node);

}  // namespace runner::checkpoint
