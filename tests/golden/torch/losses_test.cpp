// The losses of classes and values against torch, topic losses: the mean and its gradient.

#include <catch2/catch.hpp>
#include <span>
#include <string>

#include "components/loss/loss.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using tests::golden::Case;

namespace {

constexpr tests::golden::Tolerance kTolerance{2e-6, 1e-7};

bool check(const Case& golden) {
  at::Tensor output = tests::floats(golden.input.at("output"));
  components::BatchSpec data;
  TensorSpec spec{"output", Dtype::kFloat32, {kBatch, output.size(-1)}};
  if (golden.kind == "classes") {
    data = tests::class_data(4, output.size(1));
  } else if (golden.kind == "ids") {
    data = tests::text_data(output.size(2), output.size(1));
    spec.shape = {kBatch, kTime, output.size(2)};
  } else if (golden.kind == "values") {
    data = tests::value_data(4, output.size(1));
  } else {
    return false;
  }
  const bool is_float = golden.kind == "values";
  const at::Tensor target = is_float ? tests::floats(golden.input.at("target")) : tests::ids(golden.input.at("target"));
  const auto node = tests::block("loss", golden.input.at("loss").get<std::string>());
  runner::core::Diagnostics diagnostics;
  const auto loss = components::loss::build(node, {{spec}, data, node, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(loss != nullptr);

  output.requires_grad_();
  const components::TensorMap tensors = tests::judged(output, target);
  const at::Tensor mean = loss->sum(tensors) / static_cast<double>(loss->count(tensors));
  mean.backward();
  const auto agrees = [&golden](const at::Tensor& got, const char* what) {
    const at::Tensor numbers = got.detach().to(at::kDouble).contiguous();
    const std::span<const double> row(numbers.const_data_ptr<double>(), static_cast<std::size_t>(numbers.numel()));
    CHECK(tests::golden::differences(what, row, golden.expected.at(what), kTolerance) == "");
  };
  agrees(mean, "mean");
  agrees(output.grad(), "gradient");
  return true;
}

}  // namespace

TEST_CASE("losses of classes and values agree with torch", "[golden][loss]") { tests::for_each_case("losses", check); }
