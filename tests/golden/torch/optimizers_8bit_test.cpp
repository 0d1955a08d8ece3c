// Optimizers with a state in 8 bits against bitsandbytes, topic optimizers_8bit.

#include <ATen/core/Tensor.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensors;
using tests::golden::Case;
using tests::golden::Json;

namespace {

/// As drawn() of optimizers_8bit.py.
std::vector<float> drawn(std::int64_t count, std::int64_t seed) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t mixed = ((i + 1) * 2'654'435'761 + seed * 40'503 * 65'537) % (std::int64_t{1} << 32U);
    numbers.push_back(static_cast<float>(static_cast<double>(mixed >> 8U) / 16'777'216.0 - 0.5));
  }
  return numbers;
}

std::vector<float> gradient(std::int64_t count, std::int64_t seed) {
  std::vector<float> numbers = drawn(count, seed);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::ldexp(numbers[i], -3 * static_cast<int>(i % 5));
  return numbers;
}

at::Tensor tensor_of(const std::vector<float>& numbers, const Json& sizes) {
  return tests::floats(Json(numbers)).view(sizes.get<std::vector<std::int64_t>>());
}

std::vector<double> bytes_of_hex(const std::string& text) {
  std::vector<double> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) bytes.push_back(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

class State final : public runner::core::StateWriter {
 public:
  void value(std::string_view, runner::core::Node) override {}
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors[std::string(name)] = tensor; }
  std::map<std::string, at::Tensor> tensors;
};

/// A number half-way between two codes goes either way, by the last bit of its mean.
void check_codes(const std::string& what, const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  std::size_t beside = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    ++beside;
    CAPTURE(what, i);
    CHECK(std::abs(got[i] - expected[i]) <= 1.0);
  }
  CAPTURE(what);
  CHECK(beside * 1'000 <= got.size());
}

void check_steps(const Case& golden) {
  const Json& in = golden.input;
  NamedTensors parameters;
  for (const auto& [name, sizes] : in.at("sizes").items()) {
    const std::int64_t count = sizes[0].get<std::int64_t>() * sizes[1].get<std::int64_t>();
    parameters.push_back({name, tensor_of(drawn(count, 1), sizes).clone().set_requires_grad(true)});
  }
  Json block = in.at("options");
  block["type"] = in.at("type");
  const auto node = tests::block("optimizer", block.dump());
  runner::core::Diagnostics diagnostics;
  auto groups = components::optimizer::make_param_groups(node, parameters, diagnostics);
  const auto optimizer = components::optimizer::build(node, {std::move(groups)});
  for (std::int64_t step = 0; step < in.at("steps").get<std::int64_t>(); ++step) {
    for (const auto& parameter : parameters) {
      const auto numbers = gradient(parameter.tensor.numel(), 100 + step);
      parameter.tensor.mutable_grad() = tensor_of(numbers, Json(parameter.tensor.sizes().vec()));
    }
    optimizer->step();
  }
  State state;
  optimizer->save_state(state);
  for (const auto& parameter : parameters) {
    const Json& expected = golden.expected.at(parameter.name);
    const std::vector<double> all = tests::to_numbers(parameter.tensor);
    std::vector<double> third;
    for (std::size_t i = 0; i < all.size(); i += 3) third.push_back(all[i]);
    CHECK(tests::golden::differences(golden.name + " " + parameter.name, third, expected.at("weights"), {0, 1e-6}) ==
          "");
    for (const char* number : {"1", "2"}) {
      const std::string moment = std::string(number) == "1" ? "exp_avg" : "exp_avg_sq";
      const std::string what = golden.name + " " + moment + " " + parameter.name;
      if (expected.contains(std::string("codes") + number)) {
        const at::Tensor& codes = state.tensors.at(moment + "." + parameter.name);
        const at::Tensor& absmax = state.tensors.at(moment + "_absmax." + parameter.name);
        CHECK(codes.scalar_type() == at::kByte);
        check_codes(what, tests::to_numbers(codes), bytes_of_hex(expected.at(std::string("codes") + number)));
        CHECK(tests::golden::differences(what, tests::to_numbers(absmax), expected.at(std::string("absmax") + number),
                                         {1e-5, 1e-9}) == "");
      } else if (expected.contains(std::string("state") + number)) {
        const at::Tensor& mean = state.tensors.at(moment + "." + parameter.name);
        CHECK(tests::golden::differences(what, tests::to_numbers(mean), expected.at(std::string("state") + number),
                                         {1e-5, 1e-9}) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("optimizers with a state in 8 bits agree with bitsandbytes", "[golden][optimizer]") {
  tests::for_each_case("optimizers_8bit", [](const Case& golden) {
    INFO(golden.kind << " " << golden.name);
    if (golden.kind != "steps") return false;
    check_steps(golden);
    return true;
  });
}
