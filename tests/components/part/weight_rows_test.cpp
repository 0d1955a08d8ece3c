#include <ATen/Context.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "components/part/weight.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

TEST_CASE("rows that are kept have the numbers of whole parameters, which have no memory", "[part][weights]") {
  const std::array<std::int64_t, 2> shape = {6, 3};
  at::manual_seed(3);
  DrawnWeights drawn;
  const at::Tensor first = drawn.make("first", shape, normal(0.5)), second = drawn.make("second", shape, uniform(1.0)),
                   third = drawn.make("third", shape, normal(1.0));

  at::manual_seed(3);
  const WeightRows::Rows middle = [](const std::string& name, const at::Tensor& whole) {
    return name == "third" ? at::Tensor() : whole.narrow(0, 2, 2);
  };
  WeightRows rows(drawn, middle);
  const at::Tensor bare = rows.make("first", shape, normal(0.5));
  rows.make("second", shape, uniform(1.0));
  CHECK(rows.make("third", shape, normal(1.0)).equal(third));
  const at::Tensor buffer = rows.make_buffer("mean", shape, constant(2.0));

  CHECK(bare.sizes() == first.sizes());
  CHECK(bare.storage().nbytes() == 0);
  CHECK(buffer.eq(2.0).all().item<bool>());
  const NamedTensors kept = rows.take();
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].name == "first");
  CHECK(kept[0].tensor.equal(first.narrow(0, 2, 2)));
  CHECK(kept[1].tensor.equal(second.narrow(0, 2, 2)));
}

}  // namespace
}  // namespace components::part
