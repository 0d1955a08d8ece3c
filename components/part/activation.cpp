#include "components/part/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tanh.h>

#include "components/tensor/tensors.h"

namespace components::part {
namespace {

struct Name {
  const char* name;
  Activation activation;
};

// The first name of each is the one that is written.
constexpr Name kNames[] = {{"gelu", Activation::kGelu},
                           {"gelu_python", Activation::kGelu},
                           {"gelu_new", Activation::kGeluTanh},
                           {"gelu_pytorch_tanh", Activation::kGeluTanh},
                           {"gelu_python_tanh", Activation::kGeluTanh},
                           {"gelu_fast", Activation::kGeluTanh},
                           {"quick_gelu", Activation::kQuickGelu},
                           {"silu", Activation::kSilu},
                           {"swish", Activation::kSilu},
                           {"relu", Activation::kRelu},
                           {"relu2", Activation::kRelu2},
                           {"tanh", Activation::kTanh},
                           {"sigmoid", Activation::kSigmoid}};

}  // namespace

std::optional<Activation> activation_named(std::string_view name) {
  for (const Name& known : kNames) {
    if (name == known.name) return known.activation;
  }
  return std::nullopt;
}

const char* activation_names() {
  return "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, silu, relu, relu2, tanh or sigmoid";
}

const char* name_of(Activation activation) {
  for (const Name& known : kNames) {
    if (activation == known.activation) return known.name;
  }
  return "";
}

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kGelu: return at::gelu(x);
    case Activation::kQuickGelu: return x * at::sigmoid(x * 1.702);
    case Activation::kSilu: return at::silu(x);
    case Activation::kRelu: return at::relu(x);
    case Activation::kRelu2: return at::square(at::relu(x));
    case Activation::kTanh: return at::tanh(x);
    case Activation::kSigmoid: return at::sigmoid(x);
  }
  return x;
}

std::optional<kernels::Activation> of_kernels(Activation activation) {
  switch (activation) {
    case Activation::kGeluTanh: return kernels::Activation::kGeluTanh;
    case Activation::kGelu: return kernels::Activation::kGelu;
    case Activation::kSilu: return kernels::Activation::kSilu;
    case Activation::kRelu: return kernels::Activation::kRelu;
    default: return std::nullopt;
  }
}

}  // namespace components::part
