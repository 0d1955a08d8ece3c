#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tests {

/// The sizes of a recipe that is trained sharded and by one process.
struct ShardedSizes {
  int layers = 2;  ///< of a transformer
  int length = 4;  ///< tokens of a sample of text
  int side = 4;    ///< pixels of a picture
  int steps = 20;
  int batch = 48;  ///< samples of a step
};

namespace sharded_recipes {

/// What text and pictures have in common: SGD with momentum, and clipping.
inline std::string training(const ShardedSizes& sizes) {
  return "loss: cross_entropy\noptimizer: {type: sgd, lr: 0.1, momentum: 0.9}\ntraining: {max_steps: " +
         std::to_string(sizes.steps) + ", micro_batch_size: 2, global_batch_size: " + std::to_string(sizes.batch) +
         ", clip_grad_norm: 0.5}\n";
}

/// A tiny GPT that learns recipe.yaml by bytes.
inline std::string text(const ShardedSizes& sizes) {
  return "\nseed: 5\nmodel: {type: gpt, n_layer: " + std::to_string(sizes.layers) +
         ", n_head: 2, n_embd: 12, vocab_size: 256}\ndata: {train: {type: text, path: recipe.yaml, max_seq_len: " +
         std::to_string(sizes.length) + "}}\n" + training(sizes);
}

/// The setting that makes a Llama of it.
inline std::string llama(const ShardedSizes& sizes) {
  return "model={type: llama, n_layer: " + std::to_string(sizes.layers) +
         ", n_head: 2, n_kv_head: 1, n_embd: 12, vocab_size: 256}";
}

/// The setting that makes a mixture of five experts of it, which two and more processes share unevenly, in every other
/// block, with the loss that balances them.
inline std::string mixture(const ShardedSizes& sizes) {
  return "model={type: transformers, router_aux_loss_coef: 0.1, config: {model_type: qwen3_moe, num_hidden_layers: " +
         std::to_string(sizes.layers) +
         ", num_attention_heads: 2, num_key_value_heads: 1, hidden_size: 12, intermediate_size: 16, "
         "moe_intermediate_size: 8, num_experts: 5, num_experts_per_tok: 2, decoder_sparse_step: 2, vocab_size: 256, "
         "tie_word_embeddings: true, max_position_embeddings: 32}}";
}

/// A tiny ResNet of five channels, which three and four processes share unevenly.
inline std::string pictures(const ShardedSizes& sizes) {
  const std::string side = std::to_string(sizes.side);
  return R"(
seed: 5
model:
  type: sequential
  layers:
    - {type: conv2d, out_channels: 5, kernel_size: 3, padding: 1}
    - {type: residual, body: [{type: conv2d, out_channels: 5, kernel_size: 3, padding: 1}, relu], activation: relu}
    - {type: residual, body: [{type: conv2d, out_channels: 5, kernel_size: 1}, {type: group_norm, num_groups: 1}]}
    - flatten
    - {type: linear, out_features: 4}
data: {train: {type: synthetic_images, num_samples: 64, num_classes: 4, height: )" +
         side + ", width: " + side + "}}\n" + training(sizes);
}

}  // namespace sharded_recipes

/// How far finite numbers are from others.
struct Distance {
  double largest = 0.0;  ///< the largest difference, relative to the largest number of the others
  double usual = 0.0;    ///< the root of the mean square of the differences, relative to that, too
};

inline Distance distances(const std::vector<double>& of, const std::vector<double>& from) {
  REQUIRE(of.size() == from.size());
  REQUIRE(!of.empty());
  REQUIRE(std::all_of(of.begin(), of.end(), [](double number) { return std::isfinite(number); }));
  Distance distance;
  double largest = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double apart = std::abs(of[i] - from[i]);
    distance.largest = std::max(distance.largest, apart);
    squares += apart * apart;
    largest = std::max(largest, std::abs(from[i]));
  }
  distance.usual = std::sqrt(squares / static_cast<double>(of.size())) / largest;
  distance.largest /= largest;
  return distance;
}

inline double distance(const std::vector<double>& of, const std::vector<double>& from) {
  return distances(of, from).largest;
}

/// What bfloat16 does to sharded trainings beside those of one process. In one tiny training rounding decides it: of
/// one seed the sharded curve is half, of the next more than twice as far from float32 as the other where each is
/// farthest. So it is the distance over the steps of some seeds.
class Bf16Curves {
 public:
  static constexpr int kFirstSeed = 5, kSeeds = 4;

  /// The losses of a seed.
  void add(const std::vector<double>& sharded, const std::vector<double>& alone, const std::vector<double>& float32) {
    of_farthest_steps_.push_back(distance(sharded, float32) / distance(alone, float32));
    for (const auto& [all, some] : {std::pair(&sharded_, &sharded), {&alone_, &alone}, {&float32_, &float32}})
      all->insert(all->end(), some->begin(), some->end());
  }

  /// The distance to the float32 curves, over that of one process.
  double ratio() const { return distances(sharded_, float32_).usual / distances(alone_, float32_).usual; }
  /// The same of each seed alone, of the step where each curve is farthest.
  const std::vector<double>& of_farthest_steps() const { return of_farthest_steps_; }

 private:
  std::vector<double> sharded_, alone_, float32_, of_farthest_steps_;
};

}  // namespace tests
