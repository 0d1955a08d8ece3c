#include "runner/checkpoint/init_from.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <system_error>
#include <unordered_map>

#include "components/block/quantized.h"
#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_name.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/element.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/artifact/torch_reader.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/config_check.h"
#include "runner/checkpoint/packed_fit.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/core/language/name_map.h"
#include "runner/core/log.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/hub/name.h"
#include "runner/pretrained/packed/packed_reader.h"
#include "runner/store/run_reader.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using components::NamedTensor;
using core::Diagnostics;
using core::Node;
using Config = sections::init_from::Config;
using Names = std::vector<std::string>;

constexpr std::size_t kNamesShown = 10;
constexpr const char* kHead = "head.weight";
constexpr std::array kOfVocabulary = {"wte.weight", kHead, "head.bias"};
constexpr const char* kSizesHint = "give the model the same sizes, or keep their initial values with init_from.exclude";
constexpr const char* kVocabularyHint =
    "init_from.resize_vocab: true keeps the rows that both have, and begins new ones at the mean of the old";
constexpr const char* kPackedHint =
    "quantization is that of the config.json beside the weights; leave it out, and check that they belong together";
constexpr const char* kTransposeHint =
    "write the file with these weights transposed (weight.t().contiguous()), or keep their initial values with "
    "init_from.exclude";

std::string list_text(const Names& names) { return core::joined_first(names, kNamesShown); }

std::string count_text(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

bool matches_any(const Names& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return core::matches_wildcard(pattern, name); });
}

core::Result<std::string> find_source(const std::string& text, const std::string& output_dir) {
  const auto find_run = [&](const std::string& name) -> core::Result<artifact::RunCheckpoints> {
    const auto run = store::find_run(output_dir, name, core::system_clock());
    if (!run) return run.failure();
    return artifact::checkpoints_of(run.value().run_dir, run.value().id, run.value().resolved);
  };
  Names skipped;
  const auto path = artifact::find_checkpoint(text, find_run, skipped);
  for (const std::string& line : skipped) core::log_warning("init_from: skipped " + line);
  if (path) return artifact::find_tensor_set(path.value());
  const std::string on_hub = hub::meant_name(text);
  if (on_hub.empty()) return path;
  core::Failure missing = path.failure();
  missing.hint += "; a model of the Hugging Face Hub is named " + on_hub;
  return missing;
}

/// A model's tensor with its other names.
struct Target {
  const NamedTensor* tensor;
  Names names;  ///< its own first
};

/// Whether its rows are those of the vocabulary.
bool is_of_vocabulary(const std::string& name) {
  return std::find(kOfVocabulary.begin(), kOfVocabulary.end(), name) != kOfVocabulary.end();
}

class Matcher {
 public:
  Matcher(const Config& config, const Node& written, const Node& recipe, const components::model::Model& model,
          Diagnostics& diagnostics)
      : config_(config),
        location_(written.find("path")->location()),
        written_(written),
        recipe_(recipe),
        tensors_(model.parameters()),
        diagnostics_(diagnostics) {
    for (NamedTensor& buffer : model.buffers()) tensors_.push_back(std::move(buffer));
    for (const auto& named : components::block::quantized_linears(model.blocks())) {
      quantized_.emplace(named.name + ".weight", &named.linear->product());
    }
    for (NamedTensor& weight : components::block::quantized_weights(model.blocks())) {
      tensors_.push_back(std::move(weight));
    }
    for (const NamedTensor& tensor : tensors_) {
      target_of_.emplace(tensor.name, targets_.size());
      targets_.push_back({&tensor, {tensor.name}});
    }
    for (const components::block::Tie& tie : model.ties()) {
      const std::size_t target = target_of_.at(tie.owner);
      target_of_.emplace(tie.name, target);
      targets_[target].names.push_back(tie.name);
    }
  }

  std::optional<InitWeights> match(const std::string& source, const pretrained::PackedReader& reader) {
    weights_.source = source;
    for (const auto& [key, value] : reader.metadata()) {
      if (key == artifact::kStateDictKey) weights_.key = value;
    }
    const std::string folder = fs::path(source).parent_path().string();
    if (artifact::read_manifest(folder)) {
      weights_.checkpoint = folder;
      weights_.base = BaseWeights::of_checkpoint(folder);
    }
    weights_.tensors = count_of_base();
    const bool may_be_foreign = config_.rename.empty() && weights_.checkpoint.empty();
    if (may_be_foreign) {
      bare_.emplace(reader, [this](const std::string& prefix) { return begins(prefix); });
    } else {
      bare_.emplace(reader);
    }
    weights_.wrappers = bare_->taken();
    type_ = may_be_foreign ? pretrained_type_of(source, *bare_, transformers_type(recipe_)) : nullptr;
    if (type_ != nullptr) {
      weights_.model_type = type_->name;
      warn_of_differences(recipe_, tensors_, folder.empty() ? "." : folder, diagnostics_);
      find_pretrained();
    } else {
      rename();
      find_transposed(reader);
    }
    take(reader);
    check_patterns();
    check_vocabulary();
    tell_begun();
    if (!others_.empty()) {
      error("of " + source + " " + count_text(others_.size(), "tensor does", "tensors do") +
                " not fit: " + list_text(others_),
            transposed_ != nullptr                  ? kTransposeHint
            : vocabulary_differs_ == others_.size() ? kVocabularyHint
            : packed_differs_ == others_.size()     ? kPackedHint
                                                    : kSizesHint);
    }
    if (!square_.empty()) {
      error(source + " holds transposed weights (" + transposed_->name + " is " +
                artifact::shape_text(transposed_->shape) + " beside a bias of " +
                artifact::shape_text({transposed_->shape[1]}) + "), and " +
                count_text(square_.size(), "weight matches", "weights match") + " only because " +
                (square_.size() == 1 ? "it is" : "they are") + " square: " + list_text(square_),
            kTransposeHint);
    }
    if (config_.strict) refuse_names();
    check_quantized();
    if (weights_.filled == 0 && !diagnostics_.has_errors()) {
      error(source + " has no tensor for the model: of its " +
                count_text(reader.tensors().size(), "tensor", "tensors") + " none has the name of a model tensor",
            rename_hint().value_or("the model's names are " + list_text(weights_.missing)));
    }
    if (diagnostics_.has_errors()) return std::nullopt;
    return std::move(weights_);
  }

 private:
  /// Those that a source has to fill.
  std::int64_t count_of_base() const {
    return std::count_if(tensors_.begin(), tensors_.end(),
                         [](const auto& tensor) { return !components::part::is_of_term(tensor.name); });
  }

  /// Whether a name of the model begins so.
  bool begins(const std::string& prefix) const {
    return std::any_of(target_of_.begin(), target_of_.end(),
                       [&](const auto& target) { return target.first.starts_with(prefix); });
  }

  /// A part of a tensor of the model: by either name, if the source is one of Transformers.
  bool selects(const std::string& name, const std::string& part) const {
    const auto by = [&](const Names& patterns) {
      return matches_any(patterns, name) || (type_ != nullptr && matches_any(patterns, part));
    };
    return (config_.include.empty() || by(config_.include)) && !by(config_.exclude);
  }
  bool selects(const std::string& name) const {
    return (config_.include.empty() || matches_any(config_.include, name)) && !matches_any(config_.exclude, name);
  }

  /// Names in a file may contain anything.
  void error(const std::string& message, const std::string& hint) {
    diagnostics_.error(location_, "init_from: " + core::escape_for_terminal(message), core::escape_for_terminal(hint));
  }

  /// The source's tensors by their names in the model.
  void rename() {
    source_ = renamed_tensors(*bare_, core::NameMap::make(config_.rename).value());
    std::set<std::string> twice;
    for (const SourceTensor& tensor : source_.tensors) {
      const std::string& from = tensor.from.front();
      const auto [at, is_new] = there_.emplace(tensor.name, &tensor);
      if (!is_new && twice.insert(tensor.name).second) {
        diagnostics_.error(written_.find("rename")->location(),
                           core::escape_for_terminal("init_from.rename makes " + tensor.name + " of both " +
                                                     at->second->from.front() + " and " + from),
                           "make the pattern match one of them only");
      }
      if (!target_of_.contains(tensor.name) && selects(tensor.name)) weights_.unexpected.push_back(from);
      source_names_.push_back(tensor.name);
    }
  }

  /// The same for a folder of Transformers.
  void find_pretrained() {
    Names names;
    for (const Target& target : targets_) names.insert(names.end(), target.names.begin(), target.names.end());
    source_ = pretrained_tensors(*bare_, *type_, names);
    for (const SourceTensor& tensor : source_.tensors) there_.emplace(tensor.name, &tensor);
    for (const std::string& name : source_.unused) {
      if (selects(bare_->bare(name))) weights_.unexpected.push_back(name);
    }
    for (const auto& [name, parts] : source_.lacking) {
      bool asked = false;
      for (const std::string& part : parts) {
        if (!selects(name, part)) continue;
        weights_.missing.push_back(part);
        asked = true;
      }
      if (!asked) weights_.left_out.push_back(name);  // how long the other parts are to be is not known
    }
    for (const BareNames::Tensor& tensor : bare_->tensors()) source_names_.push_back(tensor.name);
  }

  /// A bias has as many values as its weight has rows. If it matches the columns instead, the weight is transposed, as
  /// in the Conv1D layers of Hugging Face's GPT-2, and then square weights are, too.
  void find_transposed(const artifact::SafetensorsReader& reader) {
    for (const TensorBytes& bytes : reader.tensors()) {
      if (bytes.shape.size() == 2) weights_2d_.emplace(bytes.name, &bytes);
    }
    for (const TensorBytes& bytes : reader.tensors()) {
      const auto weight = bytes.shape.size() == 1 ? weights_2d_.find(weight_of(bytes.name)) : weights_2d_.end();
      if (weight == weights_2d_.end() || bytes.shape[0] != weight->second->shape[1]) continue;
      biased_.insert(weight->first);
      if (transposed_ == nullptr && weight->second->shape[0] != bytes.shape[0]) transposed_ = weight->second;
    }
  }

  static std::string weight_of(const std::string& bias) {
    constexpr std::string_view kBias = "bias";
    return bias.ends_with(kBias) ? bias.substr(0, bias.size() - kBias.size()) + "weight" : "";
  }

  void take(const pretrained::PackedReader& reader) {
    for (const Target& target : targets_) {
      const std::string& own = target.tensor->name;
      if (matches_any(config_.exclude, own)) {
        weights_.left_out.push_back(own);
        continue;
      }
      bool found = false, excluded = !selects(own);
      for (const std::string& name : target.names) {
        const auto at = there_.find(name);
        if (at == there_.end()) continue;
        SourceTensor source = *at->second;
        for (const std::string& part : source.from) {
          if (!selects(name, bare_->bare(part))) source.left_out.push_back(part);
        }
        if (source.left_out.size() == source.from.size()) {
          excluded = true;
          continue;
        }
        if (!found) weights_.left_out.insert(weights_.left_out.end(), source.left_out.begin(), source.left_out.end());
        found = true;
        take_one(target, std::move(source), reader);
      }
      if (found || source_.lacking.contains(own)) continue;  // of which the parts are named
      if (components::part::is_of_term(own)) continue;       // an adapter begins as it is drawn
      if (weights_.base != nullptr && !excluded && weights_.base->holds(own)) {
        ++weights_.filled;
        weights_.elements += target.tensor->tensor.numel();
        continue;
      }
      const bool drawn = (excluded && (type_ != nullptr || !selects(own))) || begins_new(own);
      const bool base = !drawn && type_ != nullptr && own == kHead;  // a file saved as the base model
      if (base) warn_of_head();
      if (begins_new(own)) begun_.push_back(own);
      (drawn || base ? weights_.left_out : weights_.missing).push_back(own);
    }
  }

  /// Of a head that is trained here, and not by exclude.
  void tell_begun() {
    if (begun_.empty()) return;
    diagnostics_.notice(location_, core::escape_for_terminal("init_from: " + list_text(begun_) + " of the head begin" +
                                                             (begun_.size() == 1 ? "s" : "") + " at random: " +
                                                             weights_.source + " has none of that size"));
  }

  /// Whether it belongs to a head that is trained here: it keeps its initial values where the source's does not fit.
  bool begins_new(const std::string& name) const {
    const pretrained::WeightRule* rule = type_ != nullptr ? type_->rule_of(name) : nullptr;
    return rule != nullptr && rule->else_new;
  }

  void warn_of_head() {
    diagnostics_.warning(location_,
                         core::escape_for_terminal("init_from: " + weights_.source +
                                                   " has no lm_head.weight: the model's head begins at random"),
                         "tie the head to the embedding if the weights were trained so; init_from.exclude: head.weight "
                         "says that a new head is meant");
  }

  /// Rows may differ, if the rest is the same.
  bool fits_vocabulary(const std::string& name, const at::Tensor& tensor, const SourceTensor& source) const {
    const auto& shape = source.shape;
    return is_of_vocabulary(name) && !shape.empty() && source.from.size() == 1 && !source.transposed &&
           tensor.dim() == static_cast<std::int64_t>(shape.size()) && shape[0] > 0 &&
           tensor.sizes().slice(1) == at::IntArrayRef(shape).slice(1);
  }

  void check_vocabulary() {
    if (!config_.resize_vocab) return;
    if (std::any_of(tensors_.begin(), tensors_.end(), [](const auto& t) { return is_of_vocabulary(t.name); })) return;
    diagnostics_.error(written_.find("resize_vocab")->location(),
                       "init_from.resize_vocab is true, but the model has no " + core::joined(kOfVocabulary, " or "),
                       "leave it out");
  }

  /// False, with a line of what does not fit, where the source has it in fewer bits in another way than the model.
  bool take_packed(const std::string& name, SourceTensor& source, const pretrained::PackedReader& reader) {
    std::vector<const pretrained::PackedWeight*> weights;
    for (const std::string& part : source.from) {
      weights.push_back(reader.packed(part));
      if (weights.back() == nullptr) continue;
      for (const TensorBytes& tensor : weights.back()->beside) source.beside.push_back(tensor.name);
    }
    const auto layer = quantized_.find(name);
    if (source.beside.empty()) return true;
    const std::string why = source.rows_kept ? source.told() + " is quantized there, and is to get other rows"
                            : layer == quantized_.end() ? ""
                                                        : why_not_packed(*layer->second, weights, source.from);
    if (why.empty()) return true;
    others_.push_back(why);
    ++packed_differs_;
    return false;
  }

  void take_one(const Target& target, SourceTensor source, const pretrained::PackedReader& reader) {
    const at::Tensor& tensor = target.tensor->tensor;
    const std::string& name = target.tensor->name;
    const std::string dtype = dtype_word(tensor), told = type_ != nullptr ? source.told() : name;
    if (source.shape.empty() && source.from.size() > 1) {
      others_.push_back(told + " do not join");
      return;
    }
    const bool has_size = tensor.sizes() == at::IntArrayRef(source.shape);
    if (!has_size && begins_new(name)) {
      weights_.left_out.push_back(name);
      begun_.push_back(name);
      return;
    }
    const bool fits_rows = !has_size && fits_vocabulary(name, tensor, source);
    if (fits_rows && config_.resize_vocab) {
      source.rows_kept = std::min(source.shape[0], tensor.size(0));
      if (!weights_.vocabulary) weights_.vocabulary = {source.shape[0], tensor.size(0)};
    } else if (!has_size) {
      if (fits_rows) ++vocabulary_differs_;
      others_.push_back(told + " is " + artifact::shape_text(source.shape) + " there and " +
                        artifact::shape_text(tensor.sizes().vec()) + " in the model");
      return;
    }
    // Numbers of 8 bits mean nothing without their scales.
    const bool converts =
        artifact::is_floating(dtype) && (pretrained::is_packed(source.dtype) ||
                                         (artifact::is_floating(source.dtype) && !source.dtype.starts_with("F8")));
    if (dtype != source.dtype && !converts) {
      others_.push_back(told + " is " + source.dtype + " there and " + dtype + " in the model");
      return;
    }
    if (!take_packed(name, source, reader)) return;
    if (transposed_ != nullptr && biased_.contains(source.from.front())) square_.push_back(name);
    const bool is_first = weights_.fills.empty() || weights_.fills.back().name != name;
    source.name = name;
    weights_.fills.push_back(std::move(source));
    if (!is_first) return;  // the same tensor again, under its tied name
    const SourceTensor& fill = weights_.fills.back();
    if (quantized_.contains(name)) {
      ++weights_.quantized;
    } else if (dtype != fill.dtype) {
      ++weights_.converted[fill.dtype + " to " + dtype];
    }
    if (components::part::is_of_term(name)) ++weights_.tensors;
    ++weights_.filled;
    weights_.elements += fill.rows_kept ? tensor.numel() / tensor.size(0) * *fill.rows_kept : tensor.numel();
    for (const std::string& part : fill.left_out) {
      const std::vector<std::int64_t>& shape = reader.find(part)->shape;
      weights_.elements -= std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    }
  }

  /// A pattern without a match is misspelt.
  void check_patterns() {
    Names all = source_names_;
    for (const Target& target : targets_) all.insert(all.end(), target.names.begin(), target.names.end());
    for (const char* key : {"include", "exclude"}) {
      for (const Node& pattern : written_.find(key)->items()) {
        const std::string& text = pattern.as_string();
        if (std::any_of(all.begin(), all.end(), [&](const auto& name) { return core::matches_wildcard(text, name); })) {
          continue;
        }
        const std::string near = core::closest(text, all);
        diagnostics_.error(pattern.location(), std::string("init_from.") + key + " names no tensor: \"" + text + "\"",
                           near.empty() ? "`*` matches any text" : "did you mean \"" + near + "\"?");
      }
    }
  }

  /// Weights that are kept in fewer bits have no initial values, and are read again at each start.
  void check_quantized() {
    if (quantized_.empty()) return;
    if (!weights_.checkpoint.empty() && weights_.base == nullptr) {
      return error(weights_.source +
                       " is a checkpoint of a run, which may be removed, and quantized weights are read "
                       "again at each start",
                   "export it with `roux export RUN FOLDER`, and name the folder");
    }
    Names lacking;
    for (const Names* names : {&weights_.left_out, &weights_.missing}) {
      for (const std::string& name : *names) {
        if (quantized_.contains(name) || source_.lacking.contains(name)) lacking.push_back(name);
      }
    }
    if (lacking.empty()) return;
    error("quantization keeps " + list_text(lacking) + " in fewer bits, and " + weights_.source + " does not give " +
              (lacking.size() == 1 ? "it" : "them"),
          "name the layers in quantization.llm_int8_skip_modules: others begin as they are drawn");
  }

  void refuse_names() {
    const Names& missing = weights_.missing;
    const Names& unexpected = weights_.unexpected;
    if (!missing.empty()) {
      error(weights_.source + " lacks " + std::to_string(missing.size()) + " of the model's " +
                count_text(static_cast<std::size_t>(weights_.tensors), "tensor", "tensors") + ": " + list_text(missing),
            rename_hint().value_or(
                near_hint().value_or("set init_from.exclude or strict: false to keep their initial values")));
    }
    if (!unexpected.empty()) {
      error("the model has no tensors named " + list_text(unexpected) + " (" + std::to_string(unexpected.size()) +
                " of the " + count_text(there_.size(), "tensor", "tensors") + " in " + weights_.source + ")",
            components::part::is_of_term(unexpected.front())
                ? "give the recipe the adapters of that run, or exclude: [\"*.lora_*\"] to begin with its base alone"
            : missing.empty() ? "set init_from.exclude or strict: false to skip them"
                              : "init_from.rename maps them to the model's names");
    }
  }

  /// When the names differ by one prefix.
  std::optional<std::string> rename_hint() const {
    std::map<std::string, int> there, here;
    for (const std::string& name : weights_.missing) {
      for (const std::string& other : source_names_) {
        if (other.ends_with("." + name)) ++there[other.substr(0, other.size() - name.size())];
        if (name.ends_with("." + other)) ++here[name.substr(0, name.size() - other.size())];
      }
    }
    const auto most = [](const std::map<std::string, int>& counts) {
      return std::max_element(counts.begin(), counts.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
    };
    if (!there.empty()) {
      std::string pattern;
      for (const char c : most(there)->first) pattern += c == '.' ? std::string("\\.") : std::string(1, c);
      return "they are in the file below \"" + most(there)->first + "\": rename: {'^" + pattern + "': ''}";
    }
    if (!here.empty())
      return "they are in the file without \"" + most(here)->first + "\": rename: {'^': " + most(here)->first + "}";
    return std::nullopt;
  }

  std::optional<std::string> near_hint() const {
    for (std::size_t i = 0; i < weights_.missing.size() && i < kNamesShown; ++i) {
      const std::string near = core::closest(weights_.missing[i], weights_.unexpected);
      if (!near.empty()) return "is \"" + near + "\" meant as " + weights_.missing[i] + "? use init_from.rename";
    }
    return std::nullopt;
  }

  const Config& config_;
  const core::Location location_;
  const Node& written_;
  const Node& recipe_;
  components::NamedTensors tensors_;
  std::map<std::string, const components::part::Product*> quantized_;  ///< of these, their layers
  Diagnostics& diagnostics_;
  std::vector<Target> targets_;
  std::unordered_map<std::string, std::size_t> target_of_;
  const pretrained::ModelType* type_ = nullptr;  ///< of a folder of Transformers
  std::optional<BareNames> bare_;                ///< of the source
  SourceTensors source_;
  std::map<std::string, const SourceTensor*> there_;
  std::map<std::string, const TensorBytes*> weights_2d_;  ///< in the source
  std::set<std::string> biased_;                          ///< of these: with a bias as long as their width
  const TensorBytes* transposed_ = nullptr;               ///< a non-square one
  Names source_names_, others_, square_;
  Names begun_;                         ///< of a head that is trained here, and at random
  std::size_t vocabulary_differs_ = 0;  ///< how many of the others
  std::size_t packed_differs_ = 0;      ///< the same
  InitWeights weights_;
};

Node names_node(const Names& names) {
  Node list = Node::sequence();
  for (const std::string& name : names) list.items().push_back(Node::string(name));
  return list;
}

}  // namespace

std::string InitWeights::text() const {
  std::string text = std::to_string(filled) + " of " + std::to_string(tensors) + " tensors (" +
                     core::format_count(static_cast<double>(elements)) + " elements) from " + source;
  if (!key.empty()) text += " (its `" + key + "`)";
  if (!wrappers.empty()) text += " (without `" + core::joined(wrappers, "`, `") + "` in its names)";
  if (base != nullptr) text += " and its base " + base->source();
  for (const auto& [types, count] : converted) text += ", " + std::to_string(count) + " " + types;
  if (quantized > 0) text += ", " + std::to_string(quantized) + " quantized";
  if (vocabulary) {
    const auto [there, here] = *vocabulary;
    text += "; of a vocabulary of " + std::to_string(there) + " " +
            (here > there ? "all rows are kept and " + std::to_string(here - there) + " made, the mean of the old"
                          : "the first " + std::to_string(here) + " rows are kept, the others left out");
  }
  Names drawn = left_out;
  drawn.insert(drawn.end(), missing.begin(), missing.end());
  if (!drawn.empty()) {
    text += "; " + std::to_string(drawn.size()) +
            (drawn.size() == 1 ? " keeps its initial value: " : " keep their initial values: ") + list_text(drawn);
  }
  if (!unexpected.empty()) {
    text += "; " + std::to_string(unexpected.size()) + " in the file not used by the model: " + list_text(unexpected);
  }
  return core::escape_for_terminal(text);
}

Node InitWeights::to_node() const {
  Node node = Node::mapping();
  node.set("source", Node::string(source));
  if (!key.empty()) node.set("key", Node::string(key));
  node.set("filled", Node::integer(filled));
  node.set("tensors", Node::integer(tensors));
  if (!checkpoint.empty()) {
    const artifact::Manifest manifest = artifact::read_manifest(checkpoint).value();
    node.set("run_id", Node::string(manifest.fields.run_id));
    node.set("step", Node::integer(manifest.fields.step));
  }
  if (vocabulary) {
    node.set("vocabulary_there", Node::integer(vocabulary->there));
    node.set("vocabulary_here", Node::integer(vocabulary->here));
  }
  Node checksums = Node::mapping();
  const Names files = artifact::files_of_set(source).value();
  for (const std::string& file : files) {
    checksums.set(fs::path(file).filename().string(), Node::string(artifact::checksum_of_file(file).value()));
  }
  node.set("checksums", std::move(checksums));
  const std::pair<const char*, const Names*> lists[] = {
      {"missing", &missing}, {"unexpected", &unexpected}, {"left_out", &left_out}};
  for (const auto& [name, names] : lists) {
    if (!names->empty()) node.set(name, names_node(*names));
  }
  return node;
}

std::optional<InitWeights> plan_init_from(const Config& config, const Node& written, const Node& recipe,
                                          const components::model::Model& model, const std::string& output_dir,
                                          Diagnostics& diagnostics) {
  if (!config.path) return std::nullopt;
  const core::Location& location = written.find("path")->location();
  const auto source = find_source(*config.path, output_dir);
  if (!source) {
    diagnostics.error(location, "init_from: " + source.failure().message, source.failure().hint);
    return std::nullopt;
  }
  const auto reader = pretrained::PackedReader::open(source.value());
  if (!reader) {
    diagnostics.error(location, "init_from: " + reader.failure().message, reader.failure().hint);
    return std::nullopt;
  }
  return Matcher(config, written, recipe, model, diagnostics).match(source.value(), *reader.value());
}

}  // namespace runner::checkpoint
