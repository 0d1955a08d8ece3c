#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace components {

enum class Dtype { kFloat32, kInt64 };

/// A dimension known only at run time.
inline constexpr std::int64_t kBatch = -1;  ///< samples of the micro-batch
inline constexpr std::int64_t kTime = -2;   ///< positions of a sequence, at most the data set's max_seq_len

/// One named activation, as `plan` knows it before anything runs.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> shape;  ///< kBatch first; then sizes or kTime
  bool differentiable = true;

  bool operator==(const TensorSpec&) const = default;
};

/// Numbers in one such activation, for that many samples and positions.
double elements(const TensorSpec& port, std::int64_t samples, std::int64_t positions);

/// `float32 [batch, 64]`, for messages.
std::string to_text(const TensorSpec& port);

/// Names shared by all data sets, models, losses and metrics.
inline constexpr const char* kInput = "input";    ///< ids [B, T] int64, or features [B, F] float32
inline constexpr const char* kTarget = "target";  ///< ids [B, T] int64, classes [B] int64, or values [B, O] float32
inline constexpr std::int64_t kPadTarget = -100;  ///< padding in `target`; PyTorch's ignore_index
inline constexpr const char* kOutput = "output";  ///< logits [B, T, V] or [B, C], or values [B, O]
inline constexpr const char* kHidden = "hidden";  ///< [..., C]: what the output is a projection of
inline constexpr const char* kProjection = "projection";  ///< [V, C]: output = hidden W^T

/// The shape of a data set's samples, known before it is read.
struct DataSignature {
  TensorSpec input;
  TensorSpec target;
  std::int64_t vocab_size = 0;   ///< > 0: `input` holds ids below it
  std::int64_t num_classes = 0;  ///< > 0: `target` holds classes below it
  std::int64_t max_seq_len = 0;  ///< > 0: the length of T
  bool padded = false;           ///< samples have different T: `target` is kPadTarget after the end of each
};

}  // namespace components
