#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace components::part {

/// Rotary positions (Su et al. 2021), and how their wavelengths are stretched for texts longer than those that a model
/// was trained on; the names and formulas are those of Transformers' `rope_parameters`.
struct RotaryOptions {
  enum class Scaling { kNone, kLinear, kDynamic, kYarn, kLlama3, kLong };
  std::int64_t head = 0;  ///< features of a head that are turned, its first ones; even
  double base = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  std::int64_t original_positions = 0;               ///< that the model was trained on; of dynamic, yarn and llama3
  double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
  double beta_fast = 32, beta_slow = 1;              ///< yarn
  std::optional<double> attention_factor = {};       ///< yarn, longrope: of cos and sin
  double mscale = 0, mscale_all_dim = 0;             ///< yarn: 0: not given
  bool truncate = true;                              ///< yarn
  /// longrope (Ding et al. 2024): of each pair, by whether a sequence is longer than the original positions.
  std::vector<double> short_factors = {}, long_factors = {};
};

/// cos and sin of each position's angles, float32: the tables of a model, shared by its blocks; computed at each start.
class Rotation {
 public:
  /// `positions`: of the table that is made at once, with `meta` on the meta device; a longer sequence gets its own.
  Rotation(const RotaryOptions& options, std::int64_t positions, bool meta);
  ~Rotation();

  const at::Tensor& cos() const { return *cos_; }  ///< all of it, for Block::constants
  const at::Tensor& sin() const { return *sin_; }
  /// Those of a sequence: [T, 1, D / 2] for T positions.
  at::Tensor cos(std::int64_t positions) const;
  at::Tensor sin(std::int64_t positions) const;
  std::int64_t features() const;  ///< of a head, that are turned
  /// Whether a sequence of that length changes the angles of all positions, as `dynamic` and `longrope` have it beyond
  /// those that the model was trained on.
  bool depends_on_length(std::int64_t positions) const;

 private:
  bool stretches(std::int64_t positions) const;
  void stretch(std::int64_t positions) const;

  RotaryOptions options_;
  std::unique_ptr<at::Tensor> cos_, sin_;
  // Of the last sequence that the table does not serve: longer than it, or stretched by `dynamic`.
  mutable std::int64_t stretched_ = 0;
  mutable std::unique_ptr<at::Tensor> stretched_cos_, stretched_sin_;
};

/// Turns each head's features by its position, the two halves against each other; those behind Rotation::features()
/// stay. x [B, T, H, D]. positions_BT: of each, int64 and below T; undefined: 0, 1, ... in each row.
at::Tensor rotate(const at::Tensor& x_BTHD, const Rotation& rotation, const at::Tensor& positions_BT);
/// The same of positions `first` to first + T, with which the sequences end.
at::Tensor rotate(const at::Tensor& x_BTHD, const Rotation& rotation, std::int64_t first);

}  // namespace components::part
