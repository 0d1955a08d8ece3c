#include "components/block/parts_memory.h"

#include <catch2/catch.hpp>

namespace components::block {
namespace {

TEST_CASE("parts of a block add up by what the graph keeps between them", "[memory]") {
  // A product of 100 bytes to 40, its ReLU, and a product to 10. By hand, line by line.
  PartsMemory parts(100.0);
  parts.add({.keeps_input = true, .kept = 8.0, .products = 40.0, .low_weights = 3.0}, 40.0);
  parts.add({.keeps_input = false, .keeps_output = true}, 40.0);
  parts.add({.output_bytes = 2, .keeps_input = true, .products = 10.0, .steady_weights = 5.0}, 10.0);
  const BlockMemory whole = parts.whole();
  CHECK(whole.output_bytes == 2);
  CHECK_FALSE(whole.output_is_input);
  CHECK(whole.keeps_input);
  CHECK_FALSE(whole.keeps_output);
  CHECK(whole.kept == 48.0);         // 8, and the ReLU's output once for both that keep it
  CHECK(whole.forward == 30.0);      // 8 + 40 + 40 in the ReLU, of which 48 stay and 10 are counted as the output
  CHECK(whole.alone == 70.0);        // 40 + 40 there, less the 10
  CHECK(whole.backward == 80.0);     // the ReLU's two gradients, beside all that is kept
  CHECK(whole.backward_end == 0.0);  // the gradient of the first product's output in place of the 40 that are gone
  CHECK(whole.products == 50.0);
  CHECK(whole.low_weights == 3.0);
  CHECK(whole.steady_weights == 5.0);
}

TEST_CASE("what a part sees in another way is no second tensor", "[memory]") {
  const BlockMemory view{.output_is_input = true, .keeps_input = false};
  PartsMemory parts(100.0);
  parts.add(view, 100.0);
  SECTION("alone, it is the input still") {
    const BlockMemory whole = parts.whole();
    CHECK(whole.output_is_input);
    CHECK_FALSE(whole.keeps_input);
    CHECK(whole.kept == 0.0);
    CHECK(whole.alone == 0.0);
  }
  SECTION("before a product, that keeps the input") {
    parts.add({.keeps_input = true}, 10.0);
    const BlockMemory whole = parts.whole();
    CHECK(whole.keeps_input);
    CHECK(whole.kept == 0.0);
    CHECK(whole.forward == 0.0);
  }
}

}  // namespace
}  // namespace components::block
