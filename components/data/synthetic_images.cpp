// B: samples of the batch   C: channels   H, W: height and width

#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "components/data/data.h"
#include "components/data/in_memory.h"
#include "components/data/same_task.h"
#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "generated/data/synthetic_images.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace components::data::synthetic_images {
namespace {

constexpr int kWaves = 3;          ///< number of waves that a channel of a pattern sums
constexpr double kWavesMax = 3.0;  ///< periods over an image

/// Random numbers that depend only on a text (splitmix64).
class CounterRng {
 public:
  explicit CounterRng(const std::string& text) : state_(stable_hash(text)) {}

  std::uint64_t bits() {
    std::uint64_t x = state_ += 0x9E37'79B9'7F4A'7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58'476D'1CE4'E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D0'49BB'1331'11EBU;
    return x ^ (x >> 31U);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11U) * 0x1.0p-53; }
  /// One of -most, ..., most.
  std::int64_t around_zero(std::int64_t most) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(2 * most + 1)) - most;
  }

 private:
  std::uint64_t state_;
};

struct Shape {
  std::int64_t channels, height, width;
  std::int64_t size() const { return channels * height * width; }
};

/// [C, H, W]: in each channel a sum of waves, of variance 1 over many patterns.
std::vector<float> draw_pattern(const Shape& shape, CounterRng draws) {
  std::vector<float> pattern(static_cast<std::size_t>(shape.size()));
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    for (int wave = 0; wave < kWaves; ++wave) {
      const double down = kWavesMax * (2 * draws.uniform() - 1), across = kWavesMax * (2 * draws.uniform() - 1);
      const double phase = draws.uniform();
      float* pixel = pattern.data() + c * shape.height * shape.width;
      for (std::int64_t y = 0; y < shape.height; ++y) {
        for (std::int64_t x = 0; x < shape.width; ++x) {
          const double turns = down * static_cast<double>(y) / static_cast<double>(shape.height) +
                               across * static_cast<double>(x) / static_cast<double>(shape.width) + phase;
          *pixel++ += static_cast<float>(std::sqrt(2.0 / kWaves) * std::sin(2 * std::numbers::pi * turns));
        }
      }
    }
  }
  return pattern;
}

BatchSpec signature_of(const Config& config) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kFloat32, {kBatch, config.channels, config.height, config.width}, false},
                       {kTarget, Dtype::kInt64, {kBatch}, false}};
  signature.find(kTarget)->num_classes = config.num_classes;
  return signature;
}

class Images final : public Dataset {
 public:
  /// `patterns` is empty where only the header is asked for.
  Images(const Config& config, std::string samples_of, std::vector<std::vector<float>> patterns)
      : config_(config),
        shape_{config.channels, config.height, config.width},
        samples_of_(std::move(samples_of)),
        patterns_(std::move(patterns)),
        signature_(signature_of(config)) {}

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return config_.num_samples; }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    at::Tensor input_BCHW = at::empty({samples, shape_.channels, shape_.height, shape_.width}, at::kFloat);
    at::Tensor target_B = at::empty({samples}, at::kLong);
    float* image = input_BCHW.mutable_data_ptr<float>();
    std::int64_t* target = target_B.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t index : indices) {
      RUNNER_ASSERT(index >= 0 && index < config_.num_samples, "the sampler keeps to the data set");
      *target = index % config_.num_classes;
      draw(index, *target, image);
      ++target;
      image += shape_.size();
    }
    batch.set(kInput, std::move(input_BCHW));
    batch.set(kTarget, std::move(target_B));
  }

  std::int64_t memory_bytes() const override {
    return config_.num_classes * shape_.size() * static_cast<std::int64_t>(sizeof(float));
  }

  std::string describe() const override {
    return counted_large(config_.num_samples, "image", "images") + " of " + std::to_string(shape_.channels) + " x " +
           std::to_string(shape_.height) + " x " + std::to_string(shape_.width) + " in " +
           counted_large(config_.num_classes, "class", "classes");
  }

 private:
  void draw(std::int64_t index, std::int64_t of_class, float* image) const {
    CounterRng draws(samples_of_ + " " + std::to_string(index));
    const auto& pattern = patterns_[static_cast<std::size_t>(of_class)];
    const std::int64_t down = draws.around_zero(config_.shift), across = draws.around_zero(config_.shift);
    // A uniform range that wide has the deviation `noise`.
    const auto spread = static_cast<float>(2.0 * std::sqrt(3.0) * config_.noise);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      for (std::int64_t y = 0; y < shape_.height; ++y) {
        const float* row = pattern.data() + (c * shape_.height + wrapped(y + down, shape_.height)) * shape_.width;
        std::int64_t from = wrapped(across, shape_.width);
        for (std::int64_t x = 0; x < shape_.width; ++x) {
          *image++ = row[from] + spread * static_cast<float>(draws.uniform() - 0.5);
          if (++from == shape_.width) from = 0;
        }
      }
    }
  }

  static std::int64_t wrapped(std::int64_t place, std::int64_t size) { return ((place % size) + size) % size; }

  Config config_;
  Shape shape_;
  std::string samples_of_;
  std::vector<std::vector<float>> patterns_;  // [C, H, W] for each class
  BatchSpec signature_;
};

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  if (!fits_training_set(signature_of(config), inputs)) return nullptr;
  const Shape shape{config.channels, config.height, config.width};
  const double bytes = 4.0 * static_cast<double>(config.num_classes) * static_cast<double>(shape.size());
  if (!fits_in_memory(bytes, "num_classes", "use fewer classes or smaller images", inputs)) return nullptr;
  const std::string seed = std::to_string(config.seed ? static_cast<std::uint64_t>(*config.seed) : inputs.seed);
  std::vector<std::vector<float>> patterns;
  for (std::int64_t i = 0; i < config.num_classes && !inputs.header_only; ++i) {
    patterns.push_back(draw_pattern(shape, CounterRng("pattern " + seed + " " + std::to_string(i))));
  }
  return std::make_shared<Images>(config, "image " + seed + " " + inputs.name, std::move(patterns));
}

}  // namespace components::data::synthetic_images
