#include "runner/artifact/base_record.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/io/checksum.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;
using core::Node;
using core::RunError;

bool is_there(const std::string& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

const Node& field(const Node& node, const char* key, bool (Node::*is)() const, const std::string& path) {
  const Node* found = node.is_mapping() ? node.find(key) : nullptr;
  if (found == nullptr || !(found->*is)()) throw RunError(path + ": its base has no " + key);
  return *found;
}

}  // namespace

std::string checksum_of(const SafetensorsReader& source, const std::vector<BaseRecord::Tensor>& tensors) {
  Checksum sum;
  const auto add = [&sum](const std::string& text) {
    sum.update(text.data(), static_cast<std::int64_t>(text.size()) + 1);  // with its end, which separates
  };
  for (const BaseRecord::Tensor& tensor : tensors) {
    add(tensor.name);
    std::vector<std::string> all = tensor.from;
    all.insert(all.end(), tensor.beside.begin(), tensor.beside.end());
    for (const std::string& from : all) {
      const TensorBytes* bytes = source.find(from);
      if (bytes == nullptr) return "";
      add(from);
      add(bytes->dtype);
      for (const std::int64_t size : bytes->shape) add(std::to_string(size));
      for (const BytesPiece& piece : pieces_of(*bytes)) {
        sum.update(piece.data, piece.bytes);
        source.let_go(piece.data, piece.bytes);
      }
    }
  }
  return sum.text();
}

namespace {

Node names_node(const std::vector<std::string>& names) {
  Node list = Node::sequence();
  for (const std::string& name : names) list.items().push_back(Node::string(name));
  return list;
}

std::vector<std::string> names_of(const Node& list, const std::string& path) {
  std::vector<std::string> names;
  for (const Node& name : list.items()) {
    if (!name.is_string()) throw RunError(path + ": its base has a tensor without a name");
    names.push_back(name.as_string());
  }
  return names;
}

}  // namespace

Node to_node(const BaseRecord& record) {
  Node tensors = Node::sequence();
  for (const BaseRecord::Tensor& tensor : record.tensors) {
    Node one = Node::mapping();
    one.set("name", Node::string(tensor.name));
    one.set("from", names_node(tensor.from));
    if (tensor.transposed) one.set("transposed", Node::boolean(true));
    if (!tensor.dtype.empty()) one.set("dtype", Node::string(tensor.dtype));
    if (!tensor.beside.empty()) one.set("beside", names_node(tensor.beside));
    if (tensor.quantized) one.set("quantized", Node::boolean(true));
    tensors.items().push_back(std::move(one));
  }
  Node node = Node::mapping();
  node.set("source", Node::string(record.source));
  node.set("checksum", Node::string(record.checksum));
  node.set("tensors", std::move(tensors));
  return node;
}

std::optional<BaseRecord> base_of_trainer(const Node& trainer, const std::string& path) {
  const Node* node = trainer.is_mapping() ? trainer.find("base") : nullptr;
  if (node == nullptr) return std::nullopt;
  BaseRecord record{field(*node, "source", &Node::is_string, path).as_string(),
                    field(*node, "checksum", &Node::is_string, path).as_string(),
                    {}};
  for (const Node& one : field(*node, "tensors", &Node::is_sequence, path).items()) {
    BaseRecord::Tensor& tensor = record.tensors.emplace_back();
    tensor.name = field(one, "name", &Node::is_string, path).as_string();
    tensor.from = names_of(field(one, "from", &Node::is_sequence, path), path);
    if (tensor.from.empty()) throw RunError(path + ": its base has no tensor for " + tensor.name);
    const Node *transposed = one.find("transposed"), *dtype = one.find("dtype");
    tensor.transposed = transposed != nullptr && transposed->is_bool() && transposed->as_bool();
    if (dtype != nullptr && dtype->is_string()) tensor.dtype = dtype->as_string();
    if (const Node* beside = one.find("beside"); beside != nullptr && beside->is_sequence()) {
      tensor.beside = names_of(*beside, path);
    }
    const Node* quantized = one.find("quantized");
    tensor.quantized = quantized != nullptr && quantized->is_bool() && quantized->as_bool();
  }
  return record;
}

std::optional<BaseRecord> base_of_checkpoint(const std::string& folder) {
  const std::string path = (fs::path(folder) / kTrainerFile).string();
  if (!is_there(path)) return std::nullopt;
  const auto text = core::read_file(path, kTrainerBytesMax);
  if (!text) throw RunError(text.failure().message, text.failure().hint);
  const auto trainer = core::parse_json(text.value());
  if (!trainer) throw RunError(path + " cannot be read: " + trainer.failure().message);
  return base_of_trainer(trainer.value(), path);
}

std::string find_base(const BaseRecord& record, const std::string& elsewhere) {
  std::vector<std::string> places;
  if (!elsewhere.empty() && is_there(elsewhere)) {
    if (const auto set = find_tensor_set(elsewhere)) places.push_back(set.value());
  }
  if (is_there(record.source)) places.push_back(record.source);
  if (places.empty()) {
    throw RunError("the base model of these adapters is not at " + record.source,
                   "put it back, or name where it is with --set init_from=FOLDER", core::kExitUsage);
  }
  for (const std::string& place : places) {
    const auto reader = open_tensors(place);
    if (reader && checksum_of(*reader.value(), record.tensors) == record.checksum) return place;
  }
  throw RunError("the base model in " + places.front() + " has changed since these adapters were saved",
                 "put back the weights that they were trained on, or name where they are with --set init_from=FOLDER",
                 core::kExitUsage);
}

}  // namespace runner::artifact
