#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "components/model/model.h"
#include "components/part/attention.h"
#include "components/part/mlp.h"
#include "components/part/norm.h"
#include "components/part/rotation.h"

namespace components::model {

/// Fractions that training leaves out.
struct StackDropout {
  double embedding = 0, attention = 0;
  double residual = 0, mlp = 0;  ///< of what attention and the MLP add to the stream
  double hidden = 0;             ///< between the layers of the MLP; of a model with an encoder
};

/// Where the norms of a block stand: before its branches, after them (OLMo 2), around them (Gemma 2), or after the sums
/// of the branches and the stream (BERT).
enum class NormPlace { kBefore, kAfter, kAround, kSums };

/// What the stream becomes after the last block: logits of the vocabulary at each position, or of classes, of each
/// text or of each of its positions; or a vector of each text.
struct HeadOptions {
  enum class Of { kVocabulary, kTexts, kPositions, kVectors };
  /// What of a text goes to the projection: its last position, its first, or the mean of all that are no padding.
  enum class Pool { kLast, kFirst, kMean };
  /// A layer before the projection: linear, activation, and a norm or none.
  struct Dense {
    part::Activation activation = part::Activation::kTanh;
    bool bias = true, norm = false;
  };
  Of of = Of::kVocabulary;
  Pool pool = Pool::kLast;   ///< of texts and vectors
  bool normalized = false;   ///< vectors have length 1
  bool of_choices = false;   ///< of texts: a row is several texts, and the output [B, K] has the one value of each
  bool of_pairs = false;     ///< of kLast: a row is a pair of texts, and the output [B, 2] has the one value of each
  std::int64_t classes = 0;  ///< of texts or positions
  bool bias = false;         ///< of the projection
  std::optional<Dense> dense;
  std::optional<std::int64_t> padding_id;  ///< of kLast: an id that is not the last one
  double first_dropout = 0, dropout = 0;   ///< of classes: before `dense`, and before the projection
};

/// Blocks that have a mixture of experts in the place of the MLP.
struct ExpertOptions {
  std::vector<bool> of_layer;          ///< by block; empty: none has
  std::int64_t count = 0, chosen = 0;  ///< experts, and those of a position
  std::int64_t width = 0;              ///< features inside an expert
  bool normalized = true;              ///< part::MixtureOptions::normalized
  std::optional<double> balance;       ///< factor of part::balance_loss() in the loss; nothing: it is not computed
};

/// A stack of transformer blocks: what GPT-2, Llama and their like have in common, and where they differ. Weights begin
/// as normal numbers of `deviation`.
struct StackOptions {
  std::int64_t layers = 0, width = 0, vocab_size = 0, positions = 0;
  part::AttentionOptions attention;   ///< of each block; `window` by layer_windows
  bool scale_by_layer = false;        ///< scores of block i are divided by i + 1
  std::vector<std::int64_t> windows;  ///< by block, 0: none; empty: none anywhere
  bool qkv_bias = true, out_bias = true;
  part::QueryNorm query_norm = part::QueryNorm::kNone;
  part::NormOptions norm;  ///< `width` is filled in
  NormPlace norms = NormPlace::kBefore;
  std::int64_t mlp_width = 0;
  part::Activation activation = part::Activation::kGeluTanh;
  bool gated = false, mlp_bias = true;
  ExpertOptions experts;
  std::int64_t token_types = 0;  ///< > 0: vectors of them are added to those of the tokens
  bool learned_positions = false;
  bool after_padding = false;   ///< learned positions are counted over ids that are no padding, from padding_id + 1
  bool embedding_norm = false;  ///< of their sum
  bool first_norm = true;       ///< whether block 0 has a norm before attention
  bool final_norm = true;       ///< before the head
  std::optional<part::RotaryOptions> rotary;
  std::optional<part::RotaryOptions> local_rotary;  ///< of blocks with a window, where theirs differs
  std::vector<bool> rotated;                        ///< by block: whether `rotary` is for it; empty: for all
  double embedding_scale = 1, residual_scale = 1;   ///< of token vectors, and of what a branch adds
  double logit_divisor = 1;
  double logit_cap = 0;          ///< > 0: logits are `cap tanh(logit / cap)`
  std::int64_t padding_id = -1;  ///< whose vector gets no gradient from the input, as Transformers has it; -1: none
  bool tied = true;              ///< a head of the vocabulary has the token embedding's weight
  HeadOptions head;
  StackDropout dropout;
  double deviation = 0.02;
  double residual_deviation = 0.02;  ///< of the projections that add to the stream
};

/// Blocks `embed` (`wte`, `wpe`, `wtt`, `ln_e`), `h.0` ... (`ln_1`, `attn_qkv`, `attn_q_norm`, `attn_k_norm`,
/// `attn_proj`, `post_1`, `ln_2`, `mlp_fc`, `mlp_proj`, or of a mixture `mlp_router`, `mlp_experts_fc`,
/// `mlp_experts_proj`, and `post_2`, as far as the options ask for them) and `head`
/// (`ln_f`, `head.dense`, `head.norm`, `head` when it is not tied). Reads ids [B, T], gives logits [B, T, V], or of a
/// head of classes [B, C] or [B, T, C]; of vectors [B, C], or [B, K, C] where a row holds several texts. A stack that
/// looks both ways reads the mask of a padded batch; on the CPU it leaves the padding out, and what it gives for it is
/// 0. With `experts.balance` it also gives kAuxiliaryLoss. Its positions() are those of the options.
std::shared_ptr<Model> make_stack(const StackOptions& options, const Inputs& inputs);

/// The sizes of vocabulary and positions: those written, else the data's. Nothing, and an error that begins with
/// `model` ("gpt"), when the data do not hold ids, have none of a size, or need more than is written. The keys' names
/// are those of the model's schema.
struct DecoderSizes {
  std::int64_t vocab_size, positions;
  runner::core::Node of_data;  ///< Model::sizes_of_data()
};
std::optional<DecoderSizes> settle_decoder_sizes(const char* model, std::optional<std::int64_t> vocab_size,
                                                 const char* positions_key, std::optional<std::int64_t> positions,
                                                 const Inputs& inputs);

}  // namespace components::model
