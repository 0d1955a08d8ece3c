#include "runner/gguf/write_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>

#include "runner/artifact/io/io.h"
#include "runner/artifact/io/output_draft.h"
#include "runner/artifact/io/output_place.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/gguf/file_writer.h"
#include "runner/gguf/names.h"
#include "runner/gguf/vocabulary.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/tensor_floats.h"

namespace runner::gguf {
namespace {

namespace fs = std::filesystem;
using core::Node;
using core::RunError;
using pretrained::Facts;
using pretrained::WrittenTensor;

constexpr std::int64_t kQuantizationVersion = 2;
constexpr const char* kFolderHint = "leave the ending .gguf out: Transformers computes it";

[[noreturn]] void refuse(const std::string& message, const std::string& hint = kFolderHint) {
  throw RunError(message, hint, core::kExitUsage);
}

/// A tensor as Transformers has it, whose rows lie in another order in the file.
class Source {
 public:
  /// `head`: rows of a head, of those that are paired.
  Source(WrittenTensor tensor, Rows rows, std::int64_t head) : tensor_(std::move(tensor)), rows_(rows), head_(head) {}

  void read_vector(float* to) {
    const std::vector<float> values = pretrained::floats_of(content());
    for (std::size_t i = 0; i < values.size(); ++i) {
      to[i] = values[static_cast<std::size_t>(row_at(static_cast<std::int64_t>(i)))];
    }
  }

  /// Rows [first, first + count) of the file. Several threads may call it.
  void read_rows(std::int64_t first, std::int64_t count, float* to) {
    const artifact::TensorBytes& bytes = content();
    const std::int64_t rows = bytes.shape[0], columns = bytes.shape[1];
    if (rows_ != Rows::kTurned) {
      for (std::int64_t r = 0; r < count; ++r) {
        pretrained::read_floats(bytes, row_at(first + r) * columns, columns, to + r * columns);
      }
      return;
    }
    std::vector<float> part(static_cast<std::size_t>(count));  // of a row: the file's rows are columns here
    for (std::int64_t r = 0; r < rows; ++r) {
      pretrained::read_floats(bytes, r * columns + first, count, part.data());
      for (std::int64_t c = 0; c < count; ++c) to[c * rows + r] = part[static_cast<std::size_t>(c)];
    }
  }

 private:
  /// Which row of Transformers lies at `row` of the file.
  std::int64_t row_at(std::int64_t row) const {
    if (rows_ != Rows::kPaired) return row;
    const std::int64_t in_head = row % head_;
    return row - in_head + in_head % 2 * (head_ / 2) + in_head / 2;
  }

  /// Made once where it does not lie in a file.
  const artifact::TensorBytes& content() {
    std::call_once(once_, [this] {
      if (!tensor_.make) return;
      own_ = tensor_.make();
      tensor_.bytes.data = own_.data();
      tensor_.bytes.pieces.clear();
    });
    return tensor_.bytes;
  }

  WrittenTensor tensor_;
  Rows rows_;
  std::int64_t head_;
  std::once_flag once_;
  std::vector<char> own_;
};

class Writer {
 public:
  explicit Writer(const WriteRequest& request) : request_(request), facts_(request.model, request.config) {}

  WrittenFile write() {
    check_place();
    check_model();
    take_tensors();
    const Vocabulary vocabulary = read_vocabulary();
    add_config();
    add_vocabulary(vocabulary);
    const fs::path file(request_.file);
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    artifact::Io& io = artifact::system_io();
    artifact::make_dirs(io, folder);
    const std::int64_t needed = data_bytes(tensors_) + static_cast<std::int64_t>(values_.bytes().size());
    if (const std::int64_t free = io.free_bytes(folder); free < needed) {
      throw RunError(request_.file + " needs " + core::format_bytes(needed) + ", and " + folder + " has " +
                     core::format_bytes(free) + " free");
    }
    const auto count = static_cast<std::int64_t>(tensors_.size());
    artifact::OutputDraft draft(io, request_.file);
    const std::int64_t bytes = write_file(io, draft.path(), values_, std::move(tensors_));
    draft.publish();
    return {count, bytes, vocabulary.notes};
  }

 private:
  void check_place() const {
    std::error_code failed;
    if (fs::is_directory(request_.file, failed)) refuse(request_.file + " is a folder", "name a file");
    if (fs::exists(fs::symlink_status(request_.file, failed)) && !request_.force) {
      refuse(request_.file + " exists", "name another file, or add --force");
    }
    artifact::check_output_place(request_.file).value();
  }

  void check_model() {
    const pretrained::ModelType& model = request_.model;
    architecture_ = find_architecture(model.name);
    if (architecture_ == nullptr) {
      refuse("roux writes " + architecture_types() + " as GGUF, and this is a " + model.name);
    }
    if (model.head != pretrained::kCausalLm) {
      refuse("the model has the head " + (model.head.empty() ? std::string("of no task") : model.head) +
             ", and roux writes language models as GGUF");
    }
    const std::string activation = facts_.text("activation");
    const bool known =
        facts_.gated() ? activation == "silu" : activation == "gelu_new" || activation == "gelu_pytorch_tanh";
    if (!known) refuse("the model has the activation " + activation + ", and llama.cpp another one for " + model.name);
    const std::vector<std::int64_t> windows = facts_.windows();
    if (std::any_of(windows.begin(), windows.end(),
                    [this](std::int64_t window) { return window > 0 && window < facts_.integer("positions"); })) {
      refuse("the model looks back at a window of positions, and llama.cpp at all of them for " + model.name);
    }
    const auto plain = 1.0 / std::sqrt(static_cast<double>(facts_.head()));
    if (facts_.flag("scaled_by_layer") || std::fabs(facts_.scale_of_scores() - plain) > plain * 1e-6) {
      refuse("the model scales its scores of attention otherwise than llama.cpp does for " + model.name);
    }
  }

  void take_tensors() {
    for (const WrittenTensor& tensor : request_.tensors) {
      std::string name;
      const TensorName* named = architecture_->of_transformers(tensor.bytes.name, name);
      const bool is_known = named != nullptr && !(model_is("qwen3") && name.ends_with("bias"));
      if (!is_known) refuse("llama.cpp has no tensor for " + tensor.bytes.name + " of a " + request_.model.name);
      take(tensor, *named, name);
    }
    const auto embedding = std::find_if(tensors_.begin(), tensors_.end(),
                                        [](const auto& tensor) { return tensor.name == "token_embd.weight"; });
    if (embedding == tensors_.end()) refuse("the model has no embedding of tokens", "");
    rows_ = embedding->shape.front();
    const bool tied = std::none_of(tensors_.begin(), tensors_.end(),
                                   [](const auto& tensor) { return tensor.name == "output.weight"; });
    for (TensorToWrite& tensor : tensors_) {
      // What gives the logits is the most sensitive matrix: llama.cpp's own program does not take it down to 4 bits.
      const bool gives_logits = tensor.name == "output.weight" || (tied && tensor.name == "token_embd.weight");
      if (gives_logits && tensor.type == TensorType::kQ4_0) tensor.type = TensorType::kQ8_0;
    }
    add_rope_factors();
  }

  bool model_is(std::string_view name) const { return request_.model.name == name; }

  void take(const WrittenTensor& tensor, const TensorName& named, std::string name) {
    TensorToWrite to{std::move(name), request_.type.type, tensor.bytes.shape, nullptr};
    const bool is_vector = to.shape.size() < 2;
    const bool turned = named.rows == Rows::kTurned && !is_vector;
    if (turned) std::reverse(to.shape.begin(), to.shape.end());
    if (is_vector || named.is_vector) {
      to.type = TensorType::kF32;
    } else if (to.shape.back() % block_size(to.type).elements != 0) {
      to.type = TensorType::kF16;
    }
    const auto source = std::make_shared<Source>(tensor, named.rows, facts_.head());
    to.fill = [source, is_vector](std::int64_t first, std::int64_t count, float* values) {
      is_vector ? source->read_vector(values) : source->read_rows(first, count, values);
    };
    tensors_.push_back(std::move(to));
  }

  const Node* rope() const {
    const Node* rope = facts_.find("rotary");
    return rope != nullptr && rope->is_mapping() ? rope : nullptr;
  }
  std::string rope_type() const {
    const Node* type = rope() != nullptr ? rope()->find("rope_type") : nullptr;
    return type != nullptr && type->is_string() ? type->as_string() : "default";
  }
  double rope_number(const char* key, double otherwise) const {
    const Node* value = rope() != nullptr ? rope()->find(key) : nullptr;
    return value != nullptr && value->is_number() ? value->as_double() : otherwise;
  }
  double original_positions() const {
    return rope_number("original_max_position_embeddings", static_cast<double>(facts_.integer("positions")));
  }

  /// What llama.cpp divides each frequency by: Llama 3.1's stretching of long wavelengths.
  void add_rope_factors() {
    if (rope_type() != "llama3") return;
    const double base = rope_number("rope_theta", 10000.0), factor = rope_number("factor", 1.0);
    const double low = rope_number("low_freq_factor", 1.0), high = rope_number("high_freq_factor", 4.0);
    const auto head = static_cast<double>(facts_.head());
    std::vector<float> factors;
    for (std::int64_t i = 0; i < facts_.head(); i += 2) {
      const double wavelength = 2 * std::numbers::pi * std::pow(base, static_cast<double>(i) / head);
      const double turns = original_positions() / wavelength;
      const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      factors.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / factor + smooth)));
    }
    const auto size = static_cast<std::int64_t>(factors.size());
    tensors_.push_back(
        {"rope_freqs.weight", TensorType::kF32, {size}, [factors](std::int64_t, std::int64_t, float* to) {
           std::copy(factors.begin(), factors.end(), to);
         }});
  }

  Vocabulary read_vocabulary() const {
    if (request_.tokenizer.empty()) {
      refuse("the model has no tokenizer, and a GGUF file holds one",
             "name one in the recipe: tokenizer: {type: file, path: FILE}");
    }
    return vocabulary_of(request_.tokenizer, rows_).value();
  }

  void count(const char* key, std::int64_t value) { values_.add_count(own(key), value); }
  void number(const char* key, double value) { values_.add_float(own(key), value); }
  std::string own(const char* key) const { return std::string(architecture_->name) + "." + key; }

  void add_config() {
    values_.add("general.architecture", architecture_->name);
    values_.add("general.name", fs::path(request_.file).stem().string());
    values_.add_count("general.file_type", request_.type.number);
    if (block_size(request_.type.type).elements > 1) {
      values_.add_count("general.quantization_version", kQuantizationVersion);
    }
    const std::int64_t width = facts_.integer("width"), heads = facts_.integer("heads");
    constexpr std::int64_t kWider = 4;
    count("vocab_size", rows_);
    count("context_length", facts_.integer("positions"));
    count("embedding_length", width);
    count("block_count", facts_.integer("layers"));
    count("feed_forward_length", facts_.integer("mlp_width", kWider * width));
    count("attention.head_count", heads);
    const bool is_rms = facts_.text("norm") == "rms";
    number(is_rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
           facts_.number("norm_eps", 1e-5));
    if (rope() == nullptr) return;
    count("attention.head_count_kv", facts_.integer("kv_heads", heads));
    count("attention.key_length", facts_.head());
    count("attention.value_length", facts_.head());
    add_rope();
  }

  void add_rope() {
    count("rope.dimension_count", facts_.head());
    number("rope.freq_base", rope_number("rope_theta", 10000.0));
    const std::string type = rope_type();
    if (type == "default" || type == "llama3") return;
    const bool is_plain_yarn =
        type == "yarn" && std::all_of(rope()->entries().begin(), rope()->entries().end(), [](const Node::Entry& entry) {
          return entry.key.starts_with("rope_") || entry.key == "factor" || entry.value.is_null() ||
                 entry.key == "original_max_position_embeddings";
        });
    if (type != "linear" && !is_plain_yarn) {
      refuse("the model has positions of the kind " + type + (type == "yarn" ? " with factors of its own" : "") +
             ", which roux does not write as GGUF");
    }
    values_.add(own("rope.scaling.type"), type);
    number("rope.scaling.factor", rope_number("factor", 1.0));
    if (is_plain_yarn) {
      count("rope.scaling.original_context_length", static_cast<std::int64_t>(original_positions()));
    }
  }

  void add_vocabulary(const Vocabulary& vocabulary) {
    values_.add("tokenizer.ggml.model", vocabulary.model);
    if (!vocabulary.pre.empty()) values_.add("tokenizer.ggml.pre", vocabulary.pre);
    values_.add("tokenizer.ggml.tokens", vocabulary.tokens);
    if (!vocabulary.scores.empty()) values_.add("tokenizer.ggml.scores", vocabulary.scores);
    std::vector<std::int32_t> kinds;
    for (const TokenKind kind : vocabulary.kinds) kinds.push_back(static_cast<std::int32_t>(kind));
    values_.add("tokenizer.ggml.token_type", kinds);
    if (!vocabulary.merges.empty()) values_.add("tokenizer.ggml.merges", vocabulary.merges);
    const std::pair<const char*, std::optional<std::int32_t>> special[] = {{"bos_token_id", vocabulary.bos},
                                                                           {"eos_token_id", vocabulary.eos},
                                                                           {"unknown_token_id", vocabulary.unk},
                                                                           {"padding_token_id", vocabulary.pad}};
    for (const auto& [key, id] : special) {
      if (id) values_.add_count(std::string("tokenizer.ggml.") + key, *id);
    }
    values_.add("tokenizer.ggml.add_bos_token", vocabulary.add_bos);
    values_.add("tokenizer.ggml.add_eos_token", vocabulary.add_eos);
    if (!vocabulary.scores.empty()) values_.add("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
    if (!vocabulary.chat_template.empty()) values_.add("tokenizer.chat_template", vocabulary.chat_template);
  }

  const WriteRequest& request_;
  Facts facts_;
  const Architecture* architecture_ = nullptr;
  std::vector<TensorToWrite> tensors_;
  std::int64_t rows_ = 0;  ///< of the embedding
  Values values_;
};

}  // namespace

core::Result<WrittenFile> write_model(const WriteRequest& request) {
  return core::attempt([&] { return Writer(request).write(); });
}

}  // namespace runner::gguf
