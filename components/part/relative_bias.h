#pragma once

#include <cstdint>
#include <string>

#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct RelativeBiasOptions {
  std::int64_t heads = 1;
  std::int64_t buckets = 32;        ///< numbers that a head has: half of them for one distance each, the others wider
  std::int64_t max_distance = 128;  ///< from which on distances share the last bucket
  bool both_ways = false;           ///< later positions have half of the buckets; else they are not looked at
};

/// What a head adds to the score of two positions by the distance between them, `NAME.weight` [buckets, heads].
///
/// Source  Raffel et al. 2020, T5; the buckets are those of Transformers' T5Attention
class RelativeBias {
 public:
  RelativeBias(Declared& declared, const std::string& name, const RelativeBiasOptions& options, const Init& init);

  /// Of positions [first, first + count) to positions [0, seen), [1, H, count, seen].
  at::Tensor forward(std::int64_t first, std::int64_t count, std::int64_t seen) const;

 private:
  RelativeBiasOptions options_;
  Weight weight_;
};

}  // namespace components::part
