#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace components {

enum class Dtype { kFloat32, kInt64, kBool, kInt32, kUInt8, kBFloat16, kFloat16 };

/// `float32`, as messages name it.
const char* to_text(Dtype dtype);
/// Bytes of one number.
std::int64_t element_size(Dtype dtype);
bool is_floating(Dtype dtype);

/// A dimension known only at run time.
inline constexpr std::int64_t kBatch = -1;  ///< samples of the micro-batch
inline constexpr std::int64_t kTime = -2;   ///< positions of a sequence, at most the tensor's max_length

/// One named activation, or one tensor of a batch, as `plan` knows it before anything runs.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> shape;  ///< kBatch first; then sizes or kTime
  bool differentiable = true;

  // Of a tensor that the data give:
  std::int64_t vocab_size = 0;   ///< > 0: holds ids below it
  std::int64_t num_classes = 0;  ///< > 0: holds classes below it
  std::int64_t max_length = 0;   ///< > 0: the most positions along kTime
  bool padded = false;           ///< samples have different lengths; the end of a shorter one is filled
  bool scattered = false;        ///< of a mask: it is false in front of true ones, not only at the end
  bool has_ignored = false;      ///< some values are kPadTarget: they have no part in the loss
  bool in_place = false;         ///< of a target of ids: each is that of its own position, not the next one

  bool operator==(const TensorSpec&) const = default;
};

/// Numbers in one such tensor of a batch at most, for that many samples.
double elements(const TensorSpec& port, std::int64_t samples);

/// `float32 [batch, 64]`, for messages.
std::string to_text(const TensorSpec& port);

/// Names shared by all data sets, models, losses and metrics.
inline constexpr const char* kInput = "input";    ///< ids [B, T] int64, or features [B, F] float32
inline constexpr const char* kTarget = "target";  ///< ids [B, T] int64, classes [B] int64, or values [B, O] float32
inline constexpr const char* kAttentionMask = "attention_mask";  ///< [B, T] bool: true is a real position of the input
inline constexpr const char* kTokenTypes = "token_type_ids";     ///< [B, T] int64, one for each id of the input
inline constexpr const char* kDecoderInput = "decoder_input_ids";  ///< [B, D] int64, with a length of its own
inline constexpr std::int64_t kPadTarget = -100;                   ///< no part in the loss; PyTorch's ignore_index
inline constexpr const char* kOutput = "output";                   ///< logits [B, T, V] or [B, C], or values [B, O]
inline constexpr const char* kHidden = "hidden";                   ///< [..., C]: what the output is a projection of
inline constexpr const char* kProjection = "projection";           ///< [V, C]: output = hidden W^T

/// The tensor of that name; null when there is none.
const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, std::string_view name);

/// What a data set puts into a batch, known before it is read.
struct BatchSpec {
  std::vector<TensorSpec> tensors;

  const TensorSpec* find(std::string_view name) const;
  TensorSpec* find(std::string_view name);
  const TensorSpec& at(std::string_view name) const;  ///< RUNNER_ASSERT when absent

  std::int64_t max_length() const;  ///< of the input; 0 when it is no sequence
  /// The same, and of rows with several sequences that of the longest one: the positions that a model needs.
  std::int64_t longest_sequence() const;
  bool padded() const;  ///< whether any tensor is: batches differ in shape
};

/// `input, target`, for messages.
std::string names_of(const std::vector<TensorSpec>& specs);

}  // namespace components
