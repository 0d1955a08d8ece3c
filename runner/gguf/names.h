#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runner::gguf {

/// How the rows of a tensor lie in a file of llama.cpp, against Transformers.
enum class Rows {
  kSame,
  kTurned,  ///< Transformers has inputs by outputs there
  kPaired,  ///< of each head the two halves alternate there: llama.cpp turns neighbours by their position
};

/// One tensor, without `.weight` or `.bias`. `{i}`: the number of a block.
struct TensorName {
  const char *theirs, *ours;  ///< of Transformers, of llama.cpp
  Rows rows = Rows::kSame;
  bool is_vector = false;  ///< stays in float32, as norms and positions do
};

/// How llama.cpp has the models of a `model_type`.
struct Architecture {
  const char* model_type;  ///< of Transformers
  const char* name;        ///< `general.architecture`
  std::vector<TensorName> tensors;

  /// By a name with a number and `.weight` or `.bias` behind it; null for none. `name` gets the other side's name.
  const TensorName* of_transformers(std::string_view tensor, std::string& name) const;
  const TensorName* of_file(std::string_view tensor, std::string& name) const;
};

/// Null for a type that roux does not write as GGUF.
const Architecture* find_architecture(std::string_view model_type);
/// By `general.architecture`.
const Architecture* architecture_called(std::string_view name);
/// `gpt2, llama, qwen2 and qwen3`
std::string architecture_types();

}  // namespace runner::gguf
