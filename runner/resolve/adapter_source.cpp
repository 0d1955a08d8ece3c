#include "runner/resolve/adapter_source.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"

namespace runner::resolve {
namespace {

using core::Diagnostics;
using core::Node;

bool is_same(const Node& here, const Node& there) {
  if (here.is_number() && there.is_number()) return here.as_double() == there.as_double();
  return core::to_json(here, -1) == core::to_json(there, -1);
}

class Block {
 public:
  Block(Node& block, Diagnostics& diagnostics) : block_(block), diagnostics_(diagnostics) {}

  void complete() {
    const Node* path = get("path");
    if (path == nullptr || !path->is_string() || is_recorded()) return;
    const Node written = *path;
    folder_ = written.as_string();
    file_ = pretrained::adapter_config_of_folder(folder_);
    if (file_.empty()) {
      diagnostics_.error(written.location(),
                         "no " + std::string(pretrained::kAdapterConfigFile) + " in the folder " + folder_,
                         "path is the folder of an adapter that PEFT or `roux export` wrote");
      return;
    }
    const auto config = pretrained::read_adapter_config(folder_, diagnostics_);
    if (!config) return;
    const auto tensors = pretrained::AdapterFile::open(folder_, *config);
    if (!tensors) {
      diagnostics_.error(written.location(), tensors.failure().message, tensors.failure().hint);
      return;
    }
    for (const char* key : {"r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "bias"})
      take(key, *config->find(key));
    const Node* modules = config->find("modules_to_save");
    if (modules->is_sequence() && !modules->items().empty()) take("modules_to_save", *modules);
    take_layers(*config, tensors.value());
  }

 private:
  /// Whether a run wrote it, with all keys: what the folder holds today says nothing of that run.
  bool is_recorded() const {
    constexpr const char* kAll[] = {"r",        "lora_alpha", "lora_dropout",  "use_rslora",
                                    "use_dora", "bias",       "target_modules"};
    return std::all_of(std::begin(kAll), std::end(kAll), [&](const char* key) { return get(key) != nullptr; }) &&
           block_.find("exclude_modules") != nullptr && block_.find("layers_to_transform") != nullptr;
  }

  const Node* get(const char* key) const {
    const Node* value = block_.find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  void differs(const Node& here, const std::string& key, const Node& there) {
    diagnostics_.error(here.location(),
                       key + " is " + core::to_json(here, -1) + ", but " + file_ + " has " + core::to_json(there, -1),
                       "leave " + key + " out: the adapter that training begins from has one already");
  }

  void set(const char* key, Node value) {
    const Node* path = get("path");
    core::Location location = path->location();
    value.set_location(location);
    value.add_history({"adapter: " + file_, core::Origin::kAdapter});
    block_.set(key, std::move(value), std::move(location));
  }

  void take(const char* key, const Node& there) {
    const Node* here = get(key);
    if (here == nullptr) return set(key, there);
    if (!is_same(*here, there)) differs(*here, key, there);
  }

  /// The file says which layers there are: an expression of Python need not be read again.
  void take_layers(const Node& config, const pretrained::AdapterFile& tensors) {
    Node modules = Node::sequence();
    for (const auto& pair : tensors.pairs()) modules.items().push_back(Node::string(pair.module));
    for (const char* key : {"target_modules", "exclude_modules", "layers_to_transform"}) {
      const Node* here = get(key);
      if (here != nullptr && !is_same(*here, *config.find(key)) && !is_same(*here, modules)) {
        return differs(*here, key, *config.find(key));
      }
    }
    set("target_modules", std::move(modules));
    block_.erase("exclude_modules");
    block_.erase("layers_to_transform");
  }

  Node& block_;
  Diagnostics& diagnostics_;
  std::string folder_, file_;
};

}  // namespace

void complete_adapters(Node* adapters, Diagnostics& diagnostics) {
  if (adapters == nullptr || !adapters->is_sequence()) return;
  for (Node& block : adapters->items()) {
    if (block.is_mapping()) Block(block, diagnostics).complete();
  }
}

}  // namespace runner::resolve
