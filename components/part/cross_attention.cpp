// B: samples   T: positions that look   S: positions looked at   C: features of the streams   H: heads   K: heads of
// keys and values   D: features of a head

#include "components/part/cross_attention.h"

#include <ATen/TensorOperators.h>

#include <optional>
#include <vector>

#include "components/tensor/tensors.h"

namespace components::part {
namespace {

LinearOptions linear(std::int64_t in, std::int64_t out, const Init& weight, bool bias) {
  return {in, out, weight, bias ? std::make_optional(constant(0.0)) : std::nullopt};
}

}  // namespace

CrossAttention::CrossAttention(Declared& declared, const std::string& name, const CrossAttentionOptions& o)
    : options_(o.of),
      q_(declared, name + "_q", linear(o.width, o.of.heads * o.of.head, o.q, o.bias)),
      kv_(declared, name + "_kv", linear(o.width, 2 * o.of.kv_heads * o.of.head, o.kv, o.bias)),
      proj_(declared, name + "_proj", linear(o.of.heads * o.of.head, o.width, o.out, o.bias)) {}

Keys CrossAttention::keys(const at::Tensor& encoded_BSC) const {
  const at::Tensor joint = kv_.forward(encoded_BSC);
  const std::vector<at::Tensor> parts =
      joint.view({joint.size(0), joint.size(1), 2, options_.kv_heads, options_.head}).unbind(2);
  return {parts[0], parts[1]};
}

at::Tensor CrossAttention::forward(const at::Tensor& x_BTC, const Keys& keys, const AttentionPass& pass) const {
  const at::Tensor q_BTHD = q_.forward(x_BTC).view({x_BTC.size(0), x_BTC.size(1), options_.heads, options_.head});
  return proj_.forward(attend(q_BTHD, keys.k, keys.v, options_, pass));
}

}  // namespace components::part
