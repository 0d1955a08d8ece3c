#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
class TensorMap;
}  // namespace components

namespace components::part {
class KvCache;
struct CachedPass;
struct NamedExperts;
struct NamedLinear;
struct NamedProduct;
}  // namespace components::part

namespace components::block {

/// A parameter that is the same storage as one of another block (saved and counted once, under its owner).
struct Tie {
  std::string name;   ///< `head.weight`
  std::string owner;  ///< `wte.weight`
};

/// The unit of everything that wraps, places or splits a model: sharding, activation checkpointing, pipeline stages,
/// adapters, profiler ranges. A block reads its inputs from the map and writes its outputs there. Its state is anything
/// else that affects its next step, beyond parameters, buffers and LibTorch's default generator (such as its own
/// generator). If activations are recomputed, `forward` runs a second time with the same buffers and random numbers.
class Block : public runner::core::Stateful {
 public:
  virtual const std::string& name() const = 0;  ///< `h.0`; unique in the model
  virtual const std::vector<TensorSpec>& inputs() const = 0;
  virtual const std::vector<TensorSpec>& outputs() const = 0;
  virtual void forward(TensorMap& activations) const = 0;
  /// A last block whose output is `hidden W^T` may leave `kHidden` and `kProjection` instead of `kOutput`, for a loss
  /// that does not need the whole output at once.
  virtual void forward_hidden(TensorMap& activations) const { forward(activations); }
  virtual bool gives_hidden() const { return false; }  ///< whether it leaves those two
  /// For generation, where it has it: like forward() for the new positions of a CachedPass, whose rows [N, ...] stand
  /// for [B, T, ...]. The last block gives what the last position of each segment predicts, [segments, V].
  virtual bool decodes() const { return false; }
  virtual void decode(TensorMap& activations, part::CachedPass& pass) const;
  /// Whether it is of an encoder, whose output the blocks of a decoder look at. When text is generated, those run once
  /// over the whole source, and the others decode.
  virtual bool encodes() const { return false; }
  /// Of a decoder: what it looks at of the encoder's output in `activations`, [1, S, C], kept in the cache for the
  /// sequence in `slot`.
  virtual void keep_source(const TensorMap& /*activations*/, part::KvCache& /*cache*/, std::int64_t /*slot*/) const {}
  /// Whether what it gives for a position depends on later ones, so that no text can be continued with it.
  virtual bool looks_ahead() const { return false; }
  /// Whether forward() waits for the device, as the CPU has to know what it computed: no graph can be captured of it.
  virtual bool waits_for_device() const { return false; }
  /// Full names (`h.0.ln_1.weight`), in a fixed order; a tied parameter appears at its owner only.
  virtual std::vector<NamedTensor> parameters() const = 0;
  virtual std::vector<NamedTensor> buffers() const = 0;
  /// Tensors that are neither trained nor saved, such as tables computed at each start: they move to a device with the
  /// others.
  virtual std::vector<NamedTensor> constants() const;
  virtual std::vector<Tie> ties() const = 0;
  /// Linear layers that adapters may add terms to, in a fixed order. parameters() has the terms' tensors at its end.
  virtual std::vector<part::NamedLinear> linears();
  /// The weights that are kept in fewer than 16 bits, and are no parameters, in order: those of linears(), and what
  /// else a block has so.
  virtual std::vector<part::NamedProduct> quantized();
  /// Stacks of the matrices of experts, however they are kept.
  virtual std::vector<part::NamedExperts> experts() const;
  /// Other weights that forward() takes in the type of an autocast's products as well, full names of their owner's.
  /// What it reads of them but does not multiply it widens.
  virtual std::vector<std::string> lowered_weights() const { return {}; }
  virtual void set_training(bool training) = 0;
  /// Momentum of running statistics from now on, instead of the recipe's; nothing: the recipe's.
  virtual void set_running_stats_momentum(std::optional<double> /*momentum*/) {}
  /// Decays running statistics as if this many batches of zeros had followed: the other ranks' part of a step is added
  /// to that.
  virtual void decay_running_stats(std::int64_t /*batches*/) {}
  /// Multiply-adds x 2 of one forward pass over one sample of `positions` positions (matrix products only).
  virtual double forward_flops(std::int64_t positions) const = 0;
};

}  // namespace components::block
