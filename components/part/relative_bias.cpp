// T: positions that look   S: positions looked at   H: heads

#include "components/part/relative_bias.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/log.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "components/tensor/tensors.h"

namespace components::part {
namespace {

/// The bucket of each distance, how far what is looked at lies behind (negative: before) the position that looks.
at::Tensor buckets_of(const at::Tensor& distance, const RelativeBiasOptions& o) {
  const std::int64_t buckets = o.both_ways ? o.buckets / 2 : o.buckets, exact = buckets / 2;
  const at::Tensor size = o.both_ways ? distance.abs() : distance.neg().clamp_min(0);
  const double decades = std::log(static_cast<double>(o.max_distance) / static_cast<double>(exact));
  const at::Tensor wide = (at::log(size.to(at::kFloat) / exact) / decades * (buckets - exact)).to(at::kLong) + exact;
  const at::Tensor bucket = at::where(size < exact, size, wide.clamp_max(buckets - 1));
  return o.both_ways ? bucket + (distance > 0).to(at::kLong) * buckets : bucket;
}

}  // namespace

RelativeBias::RelativeBias(Declared& declared, const std::string& name, const RelativeBiasOptions& options,
                           const Init& init)
    : options_(options) {
  const std::int64_t shape[] = {options.buckets, options.heads};
  weight_ = Weight(declared.parameter(name + ".weight", shape, init));
}

at::Tensor RelativeBias::forward(std::int64_t first, std::int64_t count, std::int64_t seen) const {
  const at::TensorOptions on = weight_.tensor().options().dtype(at::kLong);
  const at::Tensor distance_TS = at::arange(seen, on).unsqueeze(0) - at::arange(first, first + count, on).unsqueeze(1);
  return at::embedding(weight_.tensor(), buckets_of(distance_TS, options_)).permute({2, 0, 1}).unsqueeze(0);
}

}  // namespace components::part
