#include "runner/gguf/unpack.h"

#include <sys/stat.h>

#include <cstring>
#include <utility>
#include <vector>

#include "runner/artifact/io/checksum.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"
#include "runner/gguf/blocks.h"
#include "runner/gguf/model_config.h"
#include "runner/gguf/names.h"
#include "runner/gguf/tokenizer_files.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/folder_writer.h"

namespace runner::gguf {
namespace {

using core::Node;
using core::RunError;

constexpr std::int64_t kShardBytesMax = 5'000'000'000;

/// The word of safetensors for what a tensor becomes.
const char* dtype_of(TensorType type) {
  return type == TensorType::kF16 ? "F16" : type == TensorType::kBf16 ? "BF16" : "F32";
}

bool is_of_blocks(TensorType type) { return block_size(type).elements > 1; }

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.rows() * tensor.columns() * (is_of_blocks(tensor.type) ? 4 : block_size(tensor.type).bytes);
}

/// The rows of Transformers, of which `tensor` has those of each head in pairs.
std::vector<char> content_of(const Tensor& tensor, Rows order, std::int64_t head) {
  // A vector is as many rows of one element.
  const bool is_vector = tensor.shape.size() < 2;
  const std::int64_t rows = is_vector ? tensor.columns() : tensor.rows();
  const std::int64_t columns = is_vector ? 1 : tensor.columns();
  const bool blocks = is_of_blocks(tensor.type);
  const std::int64_t from_bytes = row_bytes(tensor.type, columns);
  const std::int64_t to_bytes = blocks ? columns * static_cast<std::int64_t>(sizeof(float)) : from_bytes;
  std::vector<char> made(static_cast<std::size_t>(rows * to_bytes));
  std::vector<float> values(static_cast<std::size_t>(blocks ? columns : 0));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t source = row;
    if (order == Rows::kPaired) {
      const std::int64_t in_head = row % head;
      source = row - in_head + in_head % (head / 2) * 2 + in_head / (head / 2);
    }
    const char* const from = tensor.data + source * from_bytes;
    char* const to = made.data() + row * to_bytes;
    if (blocks) {
      decode(tensor.type, from, columns, values.data());
      std::memcpy(to, values.data(), static_cast<std::size_t>(to_bytes));
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(to_bytes));
    }
  }
  return made;
}

/// Inputs by outputs, as Transformers has the matrices of GPT-2.
std::vector<char> turned(const std::vector<char>& matrix, std::int64_t rows, std::int64_t columns) {
  const std::int64_t item = static_cast<std::int64_t>(matrix.size()) / (rows * columns);
  std::vector<char> other(matrix.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::memcpy(other.data() + (c * rows + r) * item, matrix.data() + (r * columns + c) * item,
                  static_cast<std::size_t>(item));
    }
  }
  return other;
}

class Unpacker {
 public:
  Unpacker(const File& file, const std::string& name) : file_(file), name_(name) {}

  void write(const std::string& folder, const std::function<void()>& begins) {
    const Node* called = file_.values().find("general.architecture");
    const std::string word = called != nullptr && called->is_string() ? called->as_string() : "";
    architecture_ = architecture_called(word);
    if (architecture_ == nullptr) {
      refuse("it is a model of the architecture " + core::quote(word),
             "roux reads those of gpt2, llama, qwen2 and qwen3");
    }
    Node config = config_of(file_, *architecture_, name_);
    const Node *width = config.find("hidden_size"), *heads = config.find("num_attention_heads"),
               *size = config.find("head_dim");
    if (size != nullptr) {
      head_ = size->as_integer();
    } else if (width != nullptr) {
      head_ = width->as_integer() / heads->as_integer();
    }
    for (const Tensor& tensor : file_.tensors()) take(tensor);
    config.set("dtype", Node::string(dtype_name_));
    const auto tokenizer = tokenizer_files(file_.values(), name_);
    if (begins) begins();
    pretrained::FolderWriter writer({.folder = folder, .bytes = unpacked_bytes(file_)});
    writer.write_text(pretrained::kConfigFile, core::to_json(config) + "\n");
    for (const auto& [file, text] : tokenizer) writer.write_text(file, text);
    writer.write_model(tensors_, kShardBytesMax);
    writer.finish();
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw RunError(name_ + ": " + what, hint, core::kExitUsage);
  }

  void take(const Tensor& tensor) {
    if (tensor.name == "rope_freqs.weight") return;  // in the configuration
    std::string name;
    const TensorName* named = architecture_->of_file(tensor.name, name);
    if (named == nullptr) {
      refuse("it has a tensor " + core::quote(tensor.name) + ", which roux does not know of a " +
                 architecture_->model_type,
             "take the model's folder of Transformers");
    }
    const std::int64_t rows = tensor.shape.size() < 2 ? tensor.columns() : tensor.rows();
    if (named->rows == Rows::kPaired && (head_ < 2 || head_ % 2 != 0 || rows % head_ != 0)) {
      refuse("the tensor " + core::quote(tensor.name) + " has " + std::to_string(rows) + " rows, no whole heads of " +
                 std::to_string(head_),
             "the file is damaged; get it again");
    }
    const bool turns = named->rows == Rows::kTurned && tensor.shape.size() == 2;
    pretrained::WrittenTensor written{
        {std::move(name), dtype_of(tensor.type), tensor.shape, nullptr, bytes_of(tensor)}};
    if (turns) std::swap(written.bytes.shape[0], written.bytes.shape[1]);
    if (tensor.name == "token_embd.weight") {
      dtype_name_ = tensor.type == TensorType::kF16    ? "float16"
                    : tensor.type == TensorType::kBf16 ? "bfloat16"
                                                       : "float32";
    }
    written.make = [tensor, turns, order = named->rows, head = head_] {
      std::vector<char> content = content_of(tensor, order, head);
      return turns ? turned(content, tensor.shape[0], tensor.shape[1]) : content;
    };
    tensors_.push_back(std::move(written));
  }

  const File& file_;
  const std::string& name_;
  const Architecture* architecture_ = nullptr;
  std::int64_t head_ = 0;
  std::string dtype_name_ = "float32";
  std::vector<pretrained::WrittenTensor> tensors_;
};

}  // namespace

std::int64_t unpacked_bytes(const File& file) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : file.tensors()) bytes += bytes_of(tensor);
  return bytes;
}

std::string content_key(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);  // a file that is gone is missed where it is opened
  const std::string said = path + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) +
                           " " + std::to_string(status.st_mtim.tv_nsec);
  constexpr std::size_t kDigits = 16;
  return artifact::checksum_of(said).substr(artifact::kChecksumPrefix.size(), kDigits);
}

core::Result<void> unpack(const File& file, const std::string& name, const std::string& folder,
                          const std::function<void()>& begins) {
  return core::attempt([&] { Unpacker(file, name).write(folder, begins); });
}

}  // namespace runner::gguf
