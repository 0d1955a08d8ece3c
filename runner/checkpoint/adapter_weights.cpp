#include "runner/checkpoint/adapter_weights.h"

#include <ATen/core/grad_mode.h>

#include <map>
#include <string>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/model_type.h"

namespace runner::checkpoint {
namespace {

using components::adapter::Adapter;
using core::Node;
using core::RunError;
using pretrained::AdapterName;
using pretrained::ModelType;

constexpr const char* kOtherModel = "it was trained for another model";

class Loader {
 public:
  Loader(const pretrained::OpenedAdapter& adapter, const components::model::Model& model, const WeightAccess& access)
      : adapter_(adapter), source_(adapter.file.path()), access_(access) {
    for (const auto& parameter : model.parameters()) parameters_.emplace(parameter.name, parameter.tensor);
  }

  /// `name`: of the adapter.
  void fill(const Adapter& adapter, const std::string& name) {
    using Own = pretrained::AdapterTensor::Part;
    for (const auto& layer : adapter.layers()) {
      for (const auto& [part, own] : {std::pair{AdapterName::Part::kA, Own::kA},
                                      {AdapterName::Part::kB, Own::kB},
                                      {AdapterName::Part::kMagnitude, Own::kMagnitude}}) {
        const auto parameter = parameters_.find(pretrained::name_of_tensor({layer.name, own, name}));
        if (parameter == parameters_.end()) continue;  // of DoRA
        const std::string there = pretrained::adapter_name(layer.module, part);
        const artifact::TensorBytes* bytes = source_.find(there);
        if (bytes == nullptr) fail("lacks " + there + ", which the recipe trains");
        fill_opened(*parameter, [&](const at::Tensor& to) { copy(*bytes, to); });
      }
    }
  }

  /// Biases and modules that were trained with the adapter. `type`: null for a model that Transformers does not have.
  void fill_whole(const ModelType* type) {
    whole_ = adapter_.file.biases();
    whole_.insert(adapter_.file.modules().begin(), adapter_.file.modules().end());
    for (const auto& [name, bytes] : whole_) {
      if (type == nullptr || !fill_one(*type, name, *bytes)) {
        fail("holds " + core::escape_for_terminal(name) + ", which the model does not have");
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw RunError(source_.path() + " " + what, kOtherModel, core::kExitUsage);
  }

  template <class Fill>
  void fill_opened(const std::pair<const std::string, at::Tensor>& parameter, const Fill& fill) {
    if (access_.open) access_.open(parameter.first);
    fill(parameter.second);
    if (access_.close) access_.close(parameter.first);
  }

  void copy(const artifact::TensorBytes& bytes, const at::Tensor& to, bool transposed = false) {
    if (transposed && bytes.shape.size() == 2) {
      const at::Tensor turned = source_.tensor(bytes.name).t();
      if (to.sizes() == turned.sizes()) {
        to.copy_(turned);
        return;
      }
    }
    if (to.sizes() != at::IntArrayRef(bytes.shape)) {
      fail("has " + core::escape_for_terminal(bytes.name) + " of shape " + artifact::shape_text(bytes.shape) +
           ", and the model's is " + artifact::shape_text(to.sizes().vec()));
    }
    source_.copy_to(*source_.find(bytes.name), to);
  }

  /// False when the model has no such tensor. One of several that are joined is a part of the model's.
  bool fill_one(const ModelType& type, const std::string& name, const artifact::TensorBytes& bytes) {
    for (const auto& rule : type.weights) {
      if (rule.is_of_experts()) continue;  // no module that an adapter trains whole
      std::int64_t first = 0;
      for (const std::string& from : rule.from) {
        const auto number = pretrained::number_in(from, name);
        if (number) {
          const auto own = parameters_.find(pretrained::with_number(rule.name, *number));
          if (own == parameters_.end()) return false;
          const std::int64_t last = first + bytes.shape[0];
          if (rule.from.size() > 1 && last > own->second.size(0)) return false;
          fill_opened(*own, [&](const at::Tensor& to) {
            copy(bytes, rule.from.size() > 1 ? to.narrow(0, first, bytes.shape[0]) : to, rule.transposed);
          });
          return true;
        }
        first += size_of_joined(from, rule, name);
      }
    }
    return false;
  }

  /// Rows of a tensor in front of `name` in the same tensor; 0 when `name` is of another rule.
  std::int64_t size_of_joined(const std::string& from, const pretrained::WeightRule& rule, const std::string& name) {
    for (const std::string& other : rule.from) {
      const auto number = pretrained::number_in(other, name);
      if (!number) continue;
      const auto at = whole_.find(pretrained::with_number(from, *number));
      if (at == whole_.end()) {
        fail("has " + core::escape_for_terminal(name) + " without " + pretrained::with_number(from, *number) +
             ", which the model joins with it");
      }
      return at->second->shape[0];
    }
    return 0;
  }

  const pretrained::OpenedAdapter& adapter_;
  TensorSource source_;
  const WeightAccess& access_;
  std::map<std::string, at::Tensor> parameters_;
  std::map<std::string, const artifact::TensorBytes*> whole_;  // by Transformers' name
};

}  // namespace

void load_adapters(const std::vector<Node>& blocks, const std::vector<std::shared_ptr<Adapter>>& adapters,
                   const components::model::Model& model, const Node& model_block, const WeightAccess& access) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < adapters.size() && i < blocks.size(); ++i) {
    const Node* path = blocks[i].find("path");
    if (path == nullptr || !path->is_string()) {
      const auto begin = [&adapter = *adapters[i]] { adapter.begin(); };
      access.in_parts ? access.in_parts(begin) : begin();
      continue;
    }
    const pretrained::OpenedAdapter opened = pretrained::open_adapter(path->as_string()).value();
    Loader loader(opened, model, access);
    loader.fill(*adapters[i], pretrained::adapter_of_block(blocks[i]));
    loader.fill_whole(pretrained::model_type_of(model_block));
    core::log_info(
        "adapter: " + core::counted_large(static_cast<std::int64_t>(adapters[i]->layers().size()), "layer", "layers") +
        " from " + opened.file.path());
  }
}

}  // namespace runner::checkpoint
