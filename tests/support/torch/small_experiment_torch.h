#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "runner/train/experiment/experiment.h"

namespace tests {

/// A data set of given rows of floats, as the golden vectors hold them: kInput float32 [batch, width of x], kTarget
/// float32 [batch, width of y].
class Rows final : public components::data::Dataset {
 public:
  Rows(std::vector<std::vector<float>> x, std::vector<std::vector<float>> y);
  const components::BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(x_.size()); }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override;
  std::string describe() const override { return "rows"; }

 private:
  std::vector<std::vector<float>> x_, y_;
  components::BatchSpec signature_;
};

/// What a small experiment is made of; the texts are blocks of a recipe.
struct Setup {
  std::vector<std::vector<float>> x, y;
  std::string model, optimizer;
  std::vector<float> weights;  ///< flattened in parameter order
  std::string scheduler = "constant", loss = "mse";
};

/// Enough of an experiment for a Stepper. Fails the test when the parts do not fit.
std::unique_ptr<runner::train::Experiment> make_experiment(const Setup& setup);
/// All weights in parameter order.
std::vector<double> flat_weights(const runner::train::Experiment& experiment);

}  // namespace tests
