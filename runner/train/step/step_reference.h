#pragma once

#include <memory>
#include <string>

#include "components/tensor/autocast.h"

namespace components {
class TensorMap;
}

namespace runner::train {

class AccumulationWindow;
struct Experiment;

/// The reference of what refers_by_step() or compares_outputs().
class StepReference {
 public:
  /// `experiment` outlives this. `other`: the reference where it is not the experiment's own model without its
  /// adapters; each process has it whole. `checksum`: of its weights, the same on all ranks; "" without it.
  StepReference(const Experiment& experiment, std::unique_ptr<Experiment> other, std::string checksum);
  ~StepReference();
  StepReference(const StepReference&) = delete;
  StepReference& operator=(const StepReference&) = delete;

  /// Gives each micro-batch of the window kReferenceChosen and kReferenceRejected, by a forward pass of each. A
  /// collective; where memory runs out in one process, all throw.
  void add_to(AccumulationWindow& window, const components::AutocastOptions& autocast) const;

  /// Gives a batch what the reference leaves for a loss that compares outputs. `whole`: its output itself, of which
  /// single samples can be taken. Not where processes divide its weights.
  void add_outputs(components::TensorMap& batch, const components::AutocastOptions& autocast, bool whole) const;

  /// Of the weights of another model; "" where the reference is the experiment's own.
  const std::string& checksum() const { return checksum_; }
  /// Before a training resumes. RunError when `checksum` is of another reference; "": that is not known.
  void expect(const std::string& checksum) const;

 private:
  const Experiment& experiment_;
  std::unique_ptr<Experiment> other_;
  std::string checksum_;
};

}  // namespace runner::train
