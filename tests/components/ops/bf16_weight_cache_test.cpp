#include "components/ops/bf16_weight_cache.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <string>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"

namespace {

using components::Bf16WeightCache;

/// What it gives is the weight as it is now.
void check_fresh(Bf16WeightCache& steady, const at::Tensor& weight) {
  CHECK(steady.in_bf16(weight).equal(weight.detach().to(at::kBFloat16)));
}

}  // namespace

TEST_CASE("a weight is rounded once until it changes", "[steady_weight]") {
  Bf16WeightCache steady;
  const at::Tensor weight = at::randn({40, 30}).set_requires_grad(true);
  const void* first = steady.in_bf16(weight).const_data_ptr();
  CHECK(steady.in_bf16(weight).const_data_ptr() == first);
  const at::NoGradGuard no_grad;
  SECTION("in place: its memory is taken again") {
    weight.add_(1.0);
    check_fresh(steady, weight);
    CHECK(steady.in_bf16(weight).const_data_ptr() == first);
  }
  SECTION("in place, while a backward pass holds the copy") {
    const at::Tensor held = steady.in_bf16(weight), before = held.clone();
    weight.copy_(at::ones({40, 30}));
    check_fresh(steady, weight);
    CHECK(held.equal(before));
  }
  SECTION("by another tensor in its place") {
    weight.set_data(at::randn({40, 30}));
    check_fresh(steady, weight);
  }
}

TEST_CASE("every optimizer tells the rounded copy that the weight has moved", "[steady_weight]") {
  const char* const optimizers[] = {
      "adadelta", "adafactor", "adagrad", "adam",    "adamax", "adamw", "adamw_schedule_free", "asgd", "lamb", "lion",
      "muon",     "nadam",     "radam",   "rmsprop", "rprop",  "sgd",   "sgd_schedule_free"};
  for (const char* name : optimizers) {
    DYNAMIC_SECTION(name) {
      // Below and above the size from which on an optimizer works on all threads.
      for (const std::int64_t width : {8, 200}) {
        const at::Tensor weight = at::randn({width, width}).set_requires_grad(true);
        const auto block = tests::block("optimizer", "{type: " + std::string(name) + ", lr: 0.5}");
        const auto optimizer = components::optimizer::build(block, {{{"default", {{"weight", weight}}, {}, {}, {}}}});
        Bf16WeightCache steady;
        steady.in_bf16(weight);
        for (int step = 0; step < 2; ++step) {
          weight.mutable_grad() = at::randn({width, width});
          optimizer->step();
          check_fresh(steady, weight);
        }
        optimizer->use_eval_weights(true);
        check_fresh(steady, weight);
        optimizer->use_eval_weights(false);
        check_fresh(steady, weight);
      }
    }
  }
}
