#include "components/part/weight.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <catch2/catch.hpp>

#include "components/tensor/tensors.h"
#include "tests/support/torch/memory_counter_torch.h"

namespace components::part {
namespace {

TEST_CASE("weights in bfloat16 are the same draws rounded, and take no float32 tensor", "[part]") {
  constexpr std::int64_t kPiece = 1 << 20;
  for (const std::int64_t size :
       {std::int64_t{3}, std::int64_t{17}, 2 * kPiece - 1, 2 * kPiece, 3 * kPiece + 5, 4 * kPiece}) {
    for (const Init& init : {normal(0.02), uniform(0.5), constant(1.0)}) {
      const std::int64_t shape[] = {size};
      at::manual_seed(7);
      DrawnWeights in_float;
      const at::Tensor expected = in_float.make("w", shape, init), after = at::rand({4});
      at::manual_seed(7);
      DrawnWeights in_bf16({"w"});
      const tests::MemoryCounter counter;
      const at::Tensor made = in_bf16.make("w", shape, init);
      CHECK(counter.peak_bytes() <= size * 2 + 2 * kPiece * 4);
      CHECK(made.scalar_type() == at::kBFloat16);
      CHECK(at::equal(made, expected.to(at::kBFloat16)));
      CHECK(at::equal(at::rand({4}), after));
    }
  }
}

TEST_CASE("weights that are read from a file are not drawn, and constants are there", "[part]") {
  const std::int64_t shape[] = {4};
  at::manual_seed(7);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(7);
  UnfilledWeights weights({"w"});
  CHECK(weights.make("w", shape, normal(1)).scalar_type() == at::kBFloat16);
  CHECK(weights.make("v", shape, normal(1)).scalar_type() == at::kFloat);
  CHECK(at::equal(weights.make("ones", shape, constant(1)), at::ones({4})));
  CHECK(at::equal(at::rand({4}), expected));
}

}  // namespace
}  // namespace components::part
