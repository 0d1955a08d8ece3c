#include "runner/pretrained/write/packer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "components/kernels/block_codes.h"
#include "components/quantization/blockwise.h"
#include "runner/artifact/io/element.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/pretrained/tensor_floats.h"
#include "runner/pretrained/write/made_tensor.h"
#include "runner/pretrained/write/merge.h"

namespace runner::pretrained {
namespace {

namespace quantization = components::quantization;

using artifact::TensorBytes;
using core::Node;
using Kind = PackedWeight::Kind;

constexpr std::string_view kWeight = ".weight";

/// A matrix [O, I] as it is packed.
struct Matrix {
  std::vector<float> numbers;
  std::int64_t out, in;
};

Matrix matrix_of(const WrittenTensor& tensor, bool is_turned) {
  std::vector<char> own;
  const TensorBytes bytes = with_content(tensor, own);
  Matrix matrix{floats_of(bytes), bytes.shape[0], bytes.shape[1]};
  if (is_turned) {
    matrix.numbers = turned(matrix.numbers, matrix.out);
    std::swap(matrix.out, matrix.in);
  }
  return matrix;
}

template <typename T>
std::vector<char> bytes_of(std::span<const T> numbers) {
  std::vector<char> bytes(numbers.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

WrittenTensor made_of(std::string name, const char* dtype, std::vector<std::int64_t> shape, std::vector<char> content) {
  const auto size = static_cast<std::int64_t>(content.size());
  WrittenTensor tensor{{std::move(name), dtype, std::move(shape), nullptr, size, {}}};
  const auto shared = std::make_shared<const std::vector<char>>(std::move(content));
  tensor.make = [shared] { return *shared; };
  return tensor;
}

template <typename T>
WrittenTensor list_of(std::string name, const char* dtype, std::span<const T> numbers) {
  return made_of(std::move(name), dtype, {static_cast<std::int64_t>(numbers.size())}, bytes_of(numbers));
}

/// What bitsandbytes writes beside the tensors of a weight in 4 bits.
std::string state_text(const Packed& packed, const PackForm& form, const Matrix& matrix, const std::string& products) {
  Node state = Node::mapping();
  state.set("quant_type", Node::string(packed_word(form.kind)));
  state.set("blocksize", Node::integer(quantization::kBlockOfFourBits));
  state.set("dtype", Node::string(products));
  state.set("shape", Node::sequence({Node::integer(matrix.out), Node::integer(matrix.in)}));
  if (form.double_quant) {
    state.set("nested_blocksize", Node::integer(quantization::kNestedBlock));
    state.set("nested_dtype", Node::string("float32"));
    state.set("nested_offset", Node::floating(static_cast<double>(packed.nested_offset)));
  }
  return core::to_json(state, -1);
}

std::string module_of(const std::string& tensor) {
  return tensor.ends_with(kWeight) ? tensor.substr(0, tensor.size() - kWeight.size()) : "";
}

/// Whether Transformers finds a module by a name of `llm_int8_skip_modules`.
bool is_named(const std::string& module, const std::string& name) {
  return module == name || module.ends_with("." + name) || module.starts_with(name + ".");
}

}  // namespace

Packer::Packer(const ModelType& type, const Node& config, const PackForm& form, const Node* skip, std::string products)
    : type_(type), form_(form), products_(std::move(products)) {
  if (skip != nullptr && skip->is_sequence()) {
    for (const Node& name : skip->items()) skip_.push_back(name.as_string());
  }
  for (const std::string& module : linear_modules(type, config)) {
    const std::string last = module.substr(module.rfind('.') + 1);
    const bool is_kept =
        std::find(type.not_quantized.begin(), type.not_quantized.end(), last) != type.not_quantized.end() ||
        std::any_of(skip_.begin(), skip_.end(), [&](const std::string& name) { return is_named(module, name); });
    if (!is_kept) layers_.insert(module);
  }
}

bool Packer::packs(const TensorBytes& tensor) const {
  return tensor.shape.size() == 2 && artifact::is_floating(tensor.dtype) &&
         layers_.contains(module_of(type_.own_name(tensor.name)));
}

std::vector<WrittenTensor> Packer::packed(const std::vector<WrittenTensor>& tensors, const std::string& dtype) {
  std::vector<WrittenTensor> all;
  for (const WrittenTensor& tensor : tensors) {
    if (packs(tensor.bytes)) {
      pack_one(tensor, all);
    } else {
      all.push_back(converted(tensor, dtype));
    }
  }
  return all;
}

void Packer::pack_one(const WrittenTensor& tensor, std::vector<WrittenTensor>& all) {
  const std::string& name = tensor.bytes.name;
  const bool turns = is_turned(type_, type_.own_name(name));
  const Matrix matrix = matrix_of(tensor, turns);
  if (form_.kind != Kind::kInt8 && matrix.in % 2 != 0) {
    throw core::RunError(core::escape_for_terminal(name) + " has rows of " + std::to_string(matrix.in) +
                             " numbers, and quantization takes two at a time",
                         "write the model in 16 bits, or in 8 with int8", core::kExitUsage);
  }
  const Packed packed = pack(matrix.numbers, matrix.in, form_);
  std::vector<float> row(static_cast<std::size_t>(matrix.in));
  const PackedWeight view = packed.view(form_, matrix.out, matrix.in);
  for (std::int64_t i = 0; i < matrix.out; ++i) {
    view.read_rows(i, 1, row.data());
    const float* const before = matrix.numbers.data() + i * matrix.in;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const double number = static_cast<double>(before[c]), error = static_cast<double>(row[c]) - number;
      error_ += error * error;
      size_ += number * number;
    }
  }
  const auto make_codes = [tensor, turns, form = form_] {
    const Matrix again = matrix_of(tensor, turns);
    return bytes_of(std::span<const std::uint8_t>(pack(again.numbers, again.in, form).codes));
  };
  const auto size = static_cast<std::int64_t>(packed.codes.size());
  const std::span<const float> scales(packed.scales);
  if (form_.kind == Kind::kInt8) {
    all.push_back({{name, "I8", {matrix.out, matrix.in}, nullptr, size, {}}, make_codes});
    all.push_back(list_of(module_of(name) + ".SCB", "F32", scales));
    all.push_back(made_of(module_of(name) + ".weight_format", "U8", {}, {'\0'}));
    return;
  }
  all.push_back({{name, "U8", {size, 1}, nullptr, size, {}}, make_codes});
  if (form_.double_quant) {
    all.push_back(list_of(name + ".absmax", "U8", std::span<const std::uint8_t>(packed.nested_codes)));
    all.push_back(list_of(name + ".nested_absmax", "F32", scales));
    all.push_back(
        list_of(name + ".nested_quant_map", "F32", std::span<const float>(components::kernels::kSignedCodes.values)));
  } else {
    all.push_back(list_of(name + ".absmax", "F32", scales));
  }
  all.push_back(list_of(name + ".quant_map", "F32", std::span<const float>(quantization::table_of(form_.kind).values)));
  const std::string state = state_text(packed, form_, matrix, products_);
  all.push_back(list_of(name + ".quant_state.bitsandbytes__" + packed_word(form_.kind), "U8",
                        std::span<const char>(state.data(), state.size())));
}

double Packer::relative_error() const { return size_ > 0 ? std::sqrt(error_ / size_) : 0.0; }

Node Packer::config_field() const {
  Node section = Node::mapping();
  section.set("load_in_4bit", Node::boolean(form_.kind != Kind::kInt8));
  section.set("load_in_8bit", Node::boolean(form_.kind == Kind::kInt8));
  if (form_.kind != Kind::kInt8) {
    section.set("bnb_4bit_quant_type", Node::string(packed_word(form_.kind)));
    section.set("bnb_4bit_use_double_quant", Node::boolean(form_.double_quant));
    section.set("bnb_4bit_compute_dtype", Node::string(products_));
    section.set("bnb_4bit_quant_storage", Node::string("uint8"));
  } else {
    section.set("llm_int8_threshold", Node::floating(6.0));
  }
  if (!skip_.empty()) {
    // A list of names takes the place of the heads that Transformers keeps without one.
    std::set<std::string> names(skip_.begin(), skip_.end());
    for (const WeightRule& rule : type_.weights) {
      if (rule.name == "head.weight") names.insert(module_of(rule.from.front()));
    }
    Node list = Node::sequence();
    for (const std::string& name : names) list.items().push_back(Node::string(name));
    section.set("llm_int8_skip_modules", std::move(list));
  }
  return quantization_config_of(section);
}

}  // namespace runner::pretrained
