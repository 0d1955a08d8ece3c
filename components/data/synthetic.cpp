#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <numbers>

#include "components/data/data.h"
#include "components/data/in_memory.h"
#include "components/data/rows.h"
#include "components/data/same_task.h"
#include "components/data/text_utils.h"
#include "generated/data/synthetic.h"
#include "runner/core/text/text.h"

// N: samples   F: inputs   O: targets

namespace components::data::synthetic {
namespace {

constexpr std::int64_t kInFeatures = 8;
constexpr std::int64_t kOutFeatures = 1;
constexpr std::int64_t kArms = 3;
constexpr double kSlope = 2.0;
constexpr double kTurn = 4.0;  ///< radians that an arm winds from the centre to radius 1

/// Separate seeds for the task and for the samples, so that differently named sets are different samples of one task.
struct Seeds {
  at::Generator task;
  at::Generator samples;
};

Seeds seeds_of(std::uint64_t seed, const std::string& name) {
  return {at::detail::createCPUGenerator(stable_hash("task " + std::to_string(seed))),
          at::detail::createCPUGenerator(stable_hash("samples " + std::to_string(seed) + " " + name))};
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel()};
}

Rows::Content regression(const Config& config, const BatchSpec& signature, Seeds seeds) {
  const std::int64_t in_features = signature.at(kInput).shape[1];
  const std::int64_t out_features = signature.at(kTarget).shape[1];
  const at::Tensor teacher_FO =
      at::randn({in_features, out_features}, seeds.task, at::kFloat) / std::sqrt(static_cast<double>(in_features));
  const at::Tensor input_NF = at::randn({config.num_samples, in_features}, seeds.samples, at::kFloat);
  const at::Tensor noise_NO = at::randn({config.num_samples, out_features}, seeds.samples, at::kFloat);
  const at::Tensor target_NO = at::mm(input_NF, teacher_FO) + config.noise * noise_NO;
  return {config.num_samples, to_vector(input_NF), to_vector(target_NO), {}};
}

Rows::Content spirals(const Config& config, std::int64_t arms, Seeds seeds) {
  const at::Tensor radius_N = at::rand({config.num_samples}, seeds.samples, at::kFloat);
  const at::Tensor noise_N2 = config.noise * at::randn({config.num_samples, 2}, seeds.samples, at::kFloat);
  const std::vector<float> radius = to_vector(radius_N);
  Rows::Content content{config.num_samples, to_vector(noise_N2), {}, {}};
  for (std::int64_t i = 0; i < config.num_samples; ++i) {
    const std::int64_t arm = i % arms;
    const double r = radius[static_cast<std::size_t>(i)];
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(arm) / static_cast<double>(arms) + kTurn * r;
    content.inputs[static_cast<std::size_t>(2 * i)] += static_cast<float>(r * std::sin(angle));
    content.inputs[static_cast<std::size_t>(2 * i + 1)] += static_cast<float>(r * std::cos(angle));
    content.classes.push_back(arm);
  }
  return content;
}

Rows::Content linear(const Config& config, double slope, Seeds seeds) {
  const at::Tensor noise_N = config.noise * at::randn({config.num_samples}, seeds.samples, at::kFloat);
  Rows::Content content{config.num_samples, {}, to_vector(noise_N), {}};
  for (std::int64_t i = 0; i < config.num_samples; ++i) {
    const auto x = static_cast<double>(i + 1);
    content.inputs.push_back(static_cast<float>(x));
    content.values[static_cast<std::size_t>(i)] += static_cast<float>(slope * x);
  }
  return content;
}

BatchSpec signature_of(const Config& config) {
  switch (config.task) {
    case Task::kRegression:
      return Rows::regression_signature(config.in_features.value_or(kInFeatures),
                                        config.out_features.value_or(kOutFeatures));
    case Task::kSpirals: return Rows::classification_signature(2, config.num_classes.value_or(kArms));
    case Task::kLinear: break;
  }
  return Rows::regression_signature(1, 1);
}

std::string describe(const Config& config, const BatchSpec& signature) {
  const std::string samples = counted_large(config.num_samples, "sample", "samples");
  switch (config.task) {
    case Task::kRegression:
      return samples + " of a linear teacher, " + counted_large(signature.at(kInput).shape[1], "input", "inputs") +
             ", " + counted_large(signature.at(kTarget).shape[1], "target", "targets");
    case Task::kSpirals: return samples + " on " + std::to_string(signature.at(kTarget).num_classes) + " spirals";
    case Task::kLinear: break;
  }
  return samples + " of a line";
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const c10::NoGradGuard no_grad;
  const BatchSpec signature = signature_of(config);
  if (!fits_training_set(signature, inputs)) return nullptr;
  const std::int64_t outputs = signature.at(kTarget).num_classes > 0 ? 2 : signature.at(kTarget).shape[1];
  const double bytes =
      4.0 * static_cast<double>(config.num_samples) * static_cast<double>(signature.at(kInput).shape[1] + outputs);
  if (!fits_in_memory(bytes, "num_samples", "use fewer samples or features", inputs)) return nullptr;
  Rows::Content content{config.num_samples, {}, {}, {}};
  if (!inputs.header_only) {
    const std::uint64_t seed = config.seed ? static_cast<std::uint64_t>(*config.seed) : inputs.seed;
    Seeds seeds = seeds_of(seed, inputs.name);
    switch (config.task) {
      case Task::kRegression: content = regression(config, signature, std::move(seeds)); break;
      case Task::kSpirals: content = spirals(config, signature.at(kTarget).num_classes, std::move(seeds)); break;
      case Task::kLinear: content = linear(config, config.slope.value_or(kSlope), std::move(seeds)); break;
    }
  }
  return std::make_shared<Rows>(signature, std::move(content), describe(config, signature));
}

}  // namespace components::data::synthetic
