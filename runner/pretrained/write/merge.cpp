// O: outputs of a layer   I: its inputs   R: rank

#include "runner/pretrained/write/merge.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "runner/artifact/io/element.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/tensor_floats.h"
#include "runner/pretrained/write/made_tensor.h"

namespace runner::pretrained {
namespace {

using artifact::TensorBytes;
using core::Failure;

constexpr std::string_view kWeight = ".weight";
constexpr std::int64_t kRowsOfThread = 64;

/// scale * left right, with left [rows, R] and right [R, columns].
struct Added {
  std::vector<float> left, right;
  std::int64_t rank;
  double scale;

  void add_row(std::int64_t row, std::vector<float>& to) const {
    const auto columns = static_cast<std::int64_t>(to.size());
    std::vector<float> sum(to.size(), 0.0F);
    for (std::int64_t r = 0; r < rank; ++r) {
      const float factor = left[static_cast<std::size_t>(row * rank + r)];
      const float* const of_right = right.data() + r * columns;
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += factor * of_right[c];
    }
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += static_cast<float>(scale) * sum[c];
  }
};

/// weight + the sum of what is added.
struct Product {
  const TensorBytes& weight;
  std::vector<Added> added;
  std::string dtype;             ///< of the result
  std::vector<float> magnitude;  ///< of DoRA, of the outputs; empty for LoRA
  bool outputs_are_rows = true;

  /// m / |V| of each output; m for a row of zeros.
  std::vector<float> factors() const {
    std::vector<double> squares(magnitude.size(), 0.0);
    std::vector<float> sum(static_cast<std::size_t>(weight.shape[1]));
    for (std::int64_t row = 0; row < weight.shape[0]; ++row) {
      sum_row(row, sum);
      for (std::size_t c = 0; c < sum.size(); ++c) {
        squares[outputs_are_rows ? static_cast<std::size_t>(row) : c] += static_cast<double>(sum[c]) * sum[c];
      }
    }
    std::vector<float> all = magnitude;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (squares[i] > 0.0) all[i] = static_cast<float>(all[i] / std::sqrt(squares[i]));
    }
    return all;
  }

  /// One row of the sum.
  void sum_row(std::int64_t row, std::vector<float>& to) const {
    const std::int64_t columns = weight.shape[1];
    read_floats(weight, row * columns, columns, to.data());
    for (const Added& one : added) one.add_row(row, to);
  }

  void rows(std::int64_t first, std::int64_t last, const std::vector<float>& factors, char* to) const {
    const std::int64_t columns = weight.shape[1], item = artifact::safetensors_item_bytes(dtype);
    std::vector<float> own(static_cast<std::size_t>(columns));
    for (std::int64_t row = first; row < last; ++row) {
      sum_row(row, own);
      for (std::size_t c = 0; !factors.empty() && c < own.size(); ++c) {
        own[c] *= factors[outputs_are_rows ? static_cast<std::size_t>(row) : c];
      }
      write_floats(dtype, own.data(), columns, to + row * columns * item);
    }
  }

  std::vector<char> all() const {
    const std::int64_t count = weight.shape[0];
    std::vector<char> made(static_cast<std::size_t>(elements_of(weight) * artifact::safetensors_item_bytes(dtype)));
    const std::int64_t most = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    const std::int64_t threads = std::clamp<std::int64_t>(count / kRowsOfThread, 1, most);
    const std::vector<float> of_outputs = magnitude.empty() ? magnitude : factors();
    std::vector<std::jthread> working;
    for (std::int64_t i = 1; i < threads; ++i) {
      working.emplace_back([&, i] { rows(count * i / threads, count * (i + 1) / threads, of_outputs, made.data()); });
    }
    rows(0, count / threads, of_outputs, made.data());
    working.clear();  // joins
    return made;
  }
};

}  // namespace

Merge::Merge(const ModelType& type, const OpenedAdapter& adapter) : type_(type) {
  for (const LowRankPair& pair : adapter.file.pairs()) add(pair, adapter_scale(adapter.config));
  replaced_ = adapter.file.biases();
  replaced_.insert(adapter.file.modules().begin(), adapter.file.modules().end());
}

bool is_turned(const ModelType& type, const std::string& weight) {
  return std::any_of(type.weights.begin(), type.weights.end(), [&](const WeightRule& rule) {
    return rule.transposed && std::any_of(rule.from.begin(), rule.from.end(),
                                          [&](const std::string& from) { return number_in(from, weight).has_value(); });
  });
}

bool Merge::is_new(const std::string& tensor) const {
  return std::any_of(type_.weights.begin(), type_.weights.end(), [&tensor](const WeightRule& rule) {
    return rule.else_new && std::find(rule.from.begin(), rule.from.end(), tensor) != rule.from.end();
  });
}

core::Result<WrittenTensor> Merge::merged(const WrittenTensor& base, const std::vector<Scaled>& added,
                                          const std::string& dtype) const {
  const TensorBytes& weight = base.bytes;
  const bool transposed = is_turned(type_, added.front().pair.module + std::string(kWeight));
  for (const Scaled& one : added) {
    const std::int64_t in = one.pair.a->shape[1], out = one.pair.b->shape[0];
    const std::vector<std::int64_t> shape = transposed ? std::vector{in, out} : std::vector{out, in};
    if (weight.shape == shape && artifact::is_floating(weight.dtype) && !weight.dtype.starts_with("F8")) continue;
    return Failure{"the adapter of " + core::escape_for_terminal(one.pair.module) + " has " + std::to_string(in) +
                       " inputs and " + std::to_string(out) + " outputs, but the model's " +
                       core::escape_for_terminal(weight.name) + " is " + weight.dtype + " " +
                       artifact::shape_text(weight.shape),
                   "it was trained for another model", core::kExitUsage};
  }
  WrittenTensor made = to_be_made(weight, dtype);
  made.make = [base, added, transposed, dtype] {
    std::vector<char> own;
    const TensorBytes weight = with_content(base, own);
    Product product{weight, {}, dtype, {}, !transposed};
    for (const Scaled& one : added) {
      const std::int64_t rank = one.pair.a->shape[0], out = one.pair.b->shape[0];
      std::vector<float> a = floats_of(*one.pair.a), b = floats_of(*one.pair.b);
      if (transposed) {
        product.added.push_back({turned(a, rank), turned(b, out), rank, one.scale});
      } else {
        product.added.push_back({std::move(b), std::move(a), rank, one.scale});
      }
      if (one.pair.magnitude != nullptr) product.magnitude = floats_of(*one.pair.magnitude);
    }
    return product.all();
  };
  return made;
}

core::Result<std::vector<WrittenTensor>> Merge::apply(const std::vector<WrittenTensor>& tensors,
                                                      const std::string& dtype) const {
  std::vector<WrittenTensor> all;
  std::set<std::string> used;
  for (const WrittenTensor& written : tensors) {
    const TensorBytes& tensor = written.bytes;
    const bool whole = tensor.name.starts_with(type_.prefix);
    std::string name = tensor.name;
    const std::string own = type_.own_name(name);
    const std::string other = whole || own != name ? own : type_.prefix + name;  // saved without the head, or with it
    const std::string module = other.ends_with(kWeight) ? other.substr(0, other.size() - kWeight.size()) : "";
    if (const auto pair = pairs_.find(module); pair != pairs_.end()) {
      used.insert(module);
      auto one = merged(written, pair->second, dtype.empty() ? tensor.dtype : dtype);
      if (!one) return one.failure();
      all.push_back(std::move(one).value());
    } else if (const auto own = replaced_.contains(name) ? replaced_.find(name) : replaced_.find(other);
               own != replaced_.end()) {
      used.insert(own->first);
      if (own->second->shape != tensor.shape && !is_new(own->first)) {
        return Failure{"the adapter's " + core::escape_for_terminal(own->first) + " is " +
                           artifact::shape_text(own->second->shape) + ", and the model's is " +
                           artifact::shape_text(tensor.shape),
                       "it was trained for another model", core::kExitUsage};
      }
      TensorBytes replaced = *own->second;
      replaced.name = std::move(name);
      all.push_back(converted({replaced}, dtype.empty() ? tensor.dtype : dtype));
    } else {
      all.push_back(converted(written, dtype));
    }
  }
  for (const auto& [module, pair] : pairs_) {
    if (used.contains(module)) continue;
    return Failure{"the adapter changes " + core::escape_for_terminal(module) + ", which the model does not have",
                   "it was trained for another model", core::kExitUsage};
  }
  for (const auto& [name, bytes] : replaced_) {
    if (used.contains(name)) continue;
    if (is_new(name)) {
      all.push_back(converted({*bytes}, dtype));
      all.back().bytes.name = name;
      continue;
    }
    return Failure{"the adapter holds " + core::escape_for_terminal(name) + ", which the model does not have",
                   "it was trained for another model", core::kExitUsage};
  }
  return all;
}

}  // namespace runner::pretrained
