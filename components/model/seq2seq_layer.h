#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "components/block/block.h"
#include "components/model/seq2seq.h"

namespace components::model {

/// Activations of a model with an encoder.
inline constexpr const char* kEncoderStream = "encoder.x";   ///< [B, S, C]
inline constexpr const char* kEncoded = "encoded";           ///< [B, S, C], what the decoder looks at
inline constexpr const char* kDecoderStream = "x";           ///< [B, T, C]
inline constexpr const char* kEncoderBias = "encoder.bias";  ///< [1, H, S, S], of relative positions
inline constexpr const char* kDecoderBias = "decoder.bias";  ///< [1, H, T, T]; in decode() [H, T], by how far behind

/// Block `layer` of the encoder or the decoder. The first one owns the bias of relative positions, and leaves it for
/// the others. `mask`: of the encoder's positions; null: not read.
std::unique_ptr<block::Block> make_seq2seq_layer(const std::string& name, std::int64_t layer, bool is_decoder,
                                                 const Seq2SeqOptions& options, const TensorSpec* mask,
                                                 part::WeightMaker& weights);

}  // namespace components::model
