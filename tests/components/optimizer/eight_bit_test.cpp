#include <ATen/Parallel.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensors;
using components::optimizer::Optimizer;

namespace {

class Memory final : public runner::core::StateWriter, public runner::core::StateReader {
 public:
  void value(std::string_view name, runner::core::Node node) override { values_[std::string(name)] = std::move(node); }
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors[std::string(name)] = tensor.clone(); }
  const runner::core::Node& value(std::string_view name) const override { return values_.at(std::string(name)); }
  bool has(std::string_view name) const override { return tensors.contains(std::string(name)); }
  at::Tensor tensor(std::string_view name) const override {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw runner::core::RunError("no tensor " + std::string(name));
    return found->second.clone();
  }
  std::map<std::string, at::Tensor, std::less<>> tensors;

 private:
  std::map<std::string, runner::core::Node> values_;
};

/// Neither a whole number of blocks nor of pieces for a thread; and one of fewer than 4,096 elements.
NamedTensors parameters() {
  return {{"w", at::linspace(-1, 1, 70'000, at::kFloat).view({70, 1'000}).set_requires_grad(true)},
          {"b", at::linspace(-1, 1, 1'000, at::kFloat).set_requires_grad(true)}};
}

std::shared_ptr<Optimizer> make(const std::string& recipe, const NamedTensors& parameters,
                                const std::map<std::string, std::int64_t>& whole_elements = {}) {
  const auto node = tests::block("optimizer", recipe);
  runner::core::Diagnostics diagnostics;
  auto groups = components::optimizer::make_param_groups(node, parameters, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return components::optimizer::build(node, {std::move(groups), whole_elements});
}

void step(Optimizer& optimizer, const NamedTensors& parameters, int number) {
  for (const auto& parameter : parameters)
    parameter.tensor.mutable_grad() = at::cos(parameter.tensor.detach() * number);
  optimizer.step();
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  return a[0].tensor.equal(b[0].tensor) && a[1].tensor.equal(b[1].tensor);
}

const char* const kRecipes[] = {"{type: adamw_8bit, lr: 0.01}", "{type: lion_8bit, lr: 0.01, weight_decay: 0.1}"};

}  // namespace

TEST_CASE("a state in 8 bits resumes bit-identically", "[optimizer][eight_bit]") {
  for (const char* recipe : kRecipes) {
    DYNAMIC_SECTION(recipe) {
      const NamedTensors straight = parameters(), resumed = parameters();
      const auto a = make(recipe, straight), before = make(recipe, resumed);
      for (int number = 1; number <= 2; ++number) {
        step(*a, straight, number);
        step(*before, resumed, number);
      }
      Memory memory;
      before->save_state(memory);
      CHECK(memory.tensors.at("exp_avg.w").scalar_type() == at::kByte);
      CHECK(memory.tensors.at("exp_avg.w").sizes() == at::IntArrayRef({70, 1'000}));
      CHECK(memory.tensors.at("exp_avg_absmax.w").sizes() == at::IntArrayRef({274}));  // 70,000 / 256 rounded up
      CHECK(memory.tensors.at("exp_avg.b").scalar_type() == at::kFloat);
      CHECK_FALSE(memory.tensors.contains("exp_avg_absmax.b"));
      const auto after = make(recipe, resumed);
      after->load_state(memory);
      for (int number = 3; number <= 5; ++number) {
        step(*a, straight, number);
        step(*after, resumed, number);
      }
      CHECK(same(straight, resumed));
    }
  }
}

TEST_CASE("a step with a state in 8 bits is the same on any number of threads", "[optimizer][eight_bit]") {
  for (const char* recipe : kRecipes) {
    DYNAMIC_SECTION(recipe) {
      std::vector<NamedTensors> ends;
      const int before = at::get_num_threads();
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        ends.push_back(parameters());
        const auto optimizer = make(recipe, ends.back());
        for (int number = 1; number <= 3; ++number) step(*optimizer, ends.back(), number);
      }
      at::set_num_threads(before);
      CHECK(same(ends[0], ends[1]));
      CHECK(same(ends[0], ends[2]));
    }
  }
}

TEST_CASE("a state in 8 bits and one in 32 are not mistaken for each other", "[optimizer][eight_bit]") {
  const NamedTensors all = parameters();
  const auto eight = make("{type: adamw_8bit}", all), whole = make("{type: adamw}", all);
  step(*eight, all, 1);
  step(*whole, all, 1);
  Memory of_eight, of_whole;
  eight->save_state(of_eight);
  whole->save_state(of_whole);
  CHECK_THROWS_WITH(eight->load_state(of_whole),
                    "optimizer state exp_avg.w is Float [70, 1000], but the parameter needs Byte [70, 1000]");
  CHECK_THROWS_WITH(whole->load_state(of_eight),
                    "optimizer state exp_avg.w is Byte [70, 1000], but the parameter needs Float [70, 1000]");
}

TEST_CASE("a state in 8 bits takes a quarter of the memory", "[optimizer][eight_bit]") {
  const NamedTensors all = parameters();
  // Two moments; of w a byte for each element and 4 for each of 274 blocks, of b 4 bytes for each.
  CHECK(make("{type: adamw_8bit}", all)->state_bytes() == 2 * (70'000 + 4 * 274 + 4'000));
  CHECK(make("{type: lion_8bit}", all)->state_bytes() == 70'000 + 4 * 274 + 4'000);
  CHECK(make("{type: adamw}", all)->state_bytes() == 2 * (280'000 + 4'000));
  NamedTensors planned;
  for (const auto& parameter : all)
    planned.push_back(
        {parameter.name, at::empty(parameter.tensor.sizes(), at::TensorOptions(at::kFloat).device(at::kMeta))});
  CHECK(make("{type: adamw_8bit}", planned)->state_bytes() == 2 * (70'000 + 4 * 274 + 4'000));
}

TEST_CASE("rows of a parameter keep as many bits as the whole", "[optimizer][eight_bit]") {
  const NamedTensors rows{{"w", at::linspace(-1, 1, 2'560, at::kFloat).set_requires_grad(true)}};
  const auto optimizer = make("{type: adamw_8bit}", rows, {{"w", 5'000}});
  step(*optimizer, rows, 1);
  Memory memory;
  optimizer->save_state(memory);
  CHECK(memory.tensors.at("exp_avg_sq.w").scalar_type() == at::kByte);
  CHECK(memory.tensors.at("exp_avg_sq_absmax.w").numel() == 10);
}

TEST_CASE("a group of a state in 8 bits has its own rate, decay and betas", "[optimizer][eight_bit]") {
  const NamedTensors all = parameters();
  const auto optimizer = make(
      "{type: adamw_8bit, lr: 0.1, param_groups: [{pattern: w, lr: 0.01, betas: [0.0, 0.0], weight_decay: 0.5}]}", all);
  const float before = all[0].tensor[3][5].item<float>();
  all[0].tensor.mutable_grad() = at::full({70, 1'000}, 2.0);
  optimizer->step();
  // By hand: without averages the step is the gradient over its own size, 1; after w * (1 - 0.01 * 0.5).
  CHECK(all[0].tensor[3][5].item<double>() == Approx(static_cast<double>(before) * 0.995 - 0.01).margin(1e-6));
}
