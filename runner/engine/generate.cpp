#include "runner/engine/generate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/data/data.h"
#include "components/data/text_bytes.h"
#include "components/generation/generator.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/chat/chat_writer.h"
#include "components/tokenizer/tokenizer.h"
#include "generated/section/generation.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/engine/collect_texts.h"
#include "runner/engine/run_record.h"
#include "runner/engine/source/source_weights.h"
#include "runner/engine/texts/text_writer.h"
#include "runner/resolve/recipe.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/rank_consistency.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

namespace fs = std::filesystem;
namespace generation = components::generation;

using components::tokenizer::ChatWriter;
using components::tokenizer::ChatWriterPtr;
using components::tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kBatch = 16;
constexpr const char* kOnlyChats = "chat";  // the command that writes nothing but conversations

/// Whether the training set is of texts whose ids are their bytes.
bool trains_on_bytes(const resolve::Recipe& recipe) {
  const core::Node* type = recipe.root.at_path("data.train.type");
  const std::string word = type != nullptr && type->is_string() ? type->as_string() : "";
  return !recipe.tokenizer && (word == "text" || word == "text_lines");
}

/// What makes ids of text, and text of ids: the recipe's tokenizer, or the training set, or bytes where that is gone.
struct Writing {
  std::shared_ptr<const Tokenizer> tokenizer;      ///< null: the set
  const components::data::Dataset* set = nullptr;  ///< null, too: bytes

  core::Result<Ids> encode(const std::string& text, bool add_special_tokens) const {
    if (tokenizer == nullptr) {
      const std::vector<std::int64_t> ids = ids_of(text);
      return Ids(ids.begin(), ids.end());
    }
    components::tokenizer::EncodeOptions with = tokenizer->for_text();
    if (!add_special_tokens) with.add_special_tokens = false;
    auto encoding = tokenizer->encode(text, with);
    if (!encoding) return encoding.failure();
    return std::move(encoding.value().ids);
  }

  std::string decode(std::span<const std::int32_t> ids) const {
    if (tokenizer != nullptr) return tokenizer->decode(ids, /*skip_special_tokens=*/true).value();
    const std::vector<std::int64_t> wide(ids.begin(), ids.end());
    return set != nullptr ? set->decode(wide) : components::data::text_of_bytes(wide);
  }

  /// Without a tokenizer.
  std::vector<std::int64_t> ids_of(const std::string& text) const {
    return set != nullptr ? set->encode(text) : components::data::bytes_of_text(text);
  }
};

/// What the first data set that says so writes as `chat_format`; null when none does.
const core::Node* written_format(const core::Node& recipe) {
  const core::Node* data = recipe.find("data");
  if (data == nullptr || !data->is_mapping()) return nullptr;
  for (const core::Node::Entry& set : data->entries()) {
    const core::Node* format = set.value.is_mapping() ? set.value.find("chat_format") : nullptr;
    if (format != nullptr && !format->is_null()) return format;
  }
  return nullptr;
}

/// How conversations are written: by the name or the file of the request, as a data set says, or by the template beside
/// the tokenizer.
/// Null when an error was reported.
ChatWriterPtr chat_writer(const resolve::Recipe& recipe, const Tokenizer& tokenizer, const GenerateRequest& request,
                          core::Diagnostics& diagnostics) {
  const std::string& name = request.chat_format;
  const core::Node* said = written_format(recipe.root);
  core::Node by_name = core::Node::string(name);
  if (std::error_code failed; !name.empty() && std::filesystem::is_regular_file(name, failed)) {
    by_name = core::Node::mapping();
    by_name.set("template", core::Node::string(name));
  }
  if (!name.empty()) said = &by_name;
  if (said != nullptr) return components::tokenizer::written_chat_writer(*said, tokenizer, diagnostics);
  const auto found = components::tokenizer::chat_writer_of(tokenizer);
  if (found) return found.value();
  const std::string name_one = "name the format that the model was trained with, such as --chat-format chatml";
  diagnostics.error(
      {}, found.failure().message,
      request.command == kOnlyChats ? name_one : name_one + ", or leave --chat out and write the whole prompt");
  return nullptr;
}

int local_rank_of(const GenerateRequest& request) { return request.rank ? request.rank->local_rank : 0; }

struct Loaded {
  std::unique_ptr<train::Experiment> experiment;
  Writing writing;
  ChatWriterPtr chat;  ///< of conversations; null: prompts are texts
};

/// The model of the recipe, on the device, without weights. Where the recipe says all that a model of text needs, no
/// data set is read. `ranks` as in train::BuildOptions.
std::unique_ptr<train::Experiment> build(const resolve::Recipe& recipe, const GenerateRequest& request,
                                         const std::shared_ptr<distributed::ProcessGroup>& ranks,
                                         core::Diagnostics& diagnostics) {
  train::BuildOptions options;
  options.for_training = false;
  options.weights_follow = true;
  options.local_rank = local_rank_of(request);
  options.ranks = ranks;
  if (recipe.tokenizer || trains_on_bytes(recipe)) {
    options.of_ids = true;
    core::Diagnostics lacks_sizes;
    if (auto experiment = train::build_experiment(recipe, options, lacks_sizes)) return experiment;
    const bool has_data = std::any_of(recipe.data.begin(), recipe.data.end(),
                                      [](const auto& set) { return !set.second.has_origin(core::Origin::kSettled); });
    if (!has_data) {
      diagnostics.add_all(lacks_sizes);
      return nullptr;
    }
  }
  options.of_ids = false;
  options.data_sets = {"train"};
  return train::build_experiment(recipe, options, diagnostics);
}

bool set_weights(const resolve::Recipe& recipe, const GenerateRequest& request, const FoundCheckpoint& checkpoint,
                 const train::Experiment& experiment, core::Diagnostics& diagnostics) {
  if (checkpoint.path.empty()) return load_foreign(request.checkpoint, recipe, experiment, diagnostics);
  if (!request.adapters.empty()) return load_below_adapter(checkpoint.path, recipe, experiment, diagnostics);
  checkpoint::load_weights(checkpoint.path, *experiment.model, recipe.init_from->path.value_or(""),
                           train::weight_access(experiment));
  return true;
}

/// Whether the model continues ids, and the ids are text.
bool continues_text(const Loaded& loaded, core::Diagnostics& diagnostics) {
  const core::Location& model = loaded.experiment->recipe.model.location();
  if (!loaded.experiment->model->continues_text()) {
    diagnostics.error(model, "generation needs logits of the next token, which this model does not return",
                      "use a model of text such as gpt or llama, or one with head: causal_lm");
    return false;
  }
  for (const components::TensorSpec& input : loaded.experiment->model->inputs()) {
    if (input.name == components::kInput && input.dtype == components::Dtype::kInt64) continue;
    if (input.name == components::kAttentionMask || input.name == components::kPositions ||
        input.name == components::kDecoderInput) {
      continue;
    }
    diagnostics.error(model, "generation has a text for the model to continue, but it reads " + to_text(input),
                      "use a model of text such as gpt or llama");
    return false;
  }
  if (loaded.writing.tokenizer != nullptr || !loaded.writing.ids_of("a").empty()) return true;
  diagnostics.error(model, "generation continues text, but the ids of data.train are not text",
                    "give the recipe a tokenizer");
  return false;
}

std::optional<Loaded> load(const resolve::Recipe& recipe, const GenerateRequest& request,
                           core::Diagnostics& diagnostics) {
  EvalRequest record;
  record.checkpoint = request.checkpoint;
  record.run = request.run;
  record.data = "train";
  record.command = request.command;
  record.adapters = request.adapters;
  train::configure_torch(recipe);
  const auto ranks = train::join_process_group(recipe, request.rank, recipe.device);
  FoundCheckpoint checkpoint;
  if (!names_foreign_weights(request.checkpoint)) {
    checkpoint = find_checkpoint(recipe, record, ranks.get());
    if (!fits_recorded_recipe(recipe, checkpoint, record, diagnostics)) return std::nullopt;
  }
  train::prepare_device(recipe, local_rank_of(request));
  Loaded loaded;
  if (const auto source = components::data::tokenizer_source(recipe.tokenizer, diagnostics)) {
    loaded.writing.tokenizer = source();
    if (loaded.writing.tokenizer == nullptr) return std::nullopt;
  }
  if (request.chat && loaded.writing.tokenizer == nullptr) {
    diagnostics.error({}, "a conversation needs a tokenizer with a chat template, and the recipe has none",
                      "give the recipe a tokenizer, or write the whole prompt");
    return std::nullopt;
  }
  if (request.chat) {
    loaded.chat = chat_writer(recipe, *loaded.writing.tokenizer, request, diagnostics);
    if (loaded.chat == nullptr) return std::nullopt;
  }
  loaded.experiment = build(with_recorded_sizes(recipe, checkpoint), request, ranks, diagnostics);
  if (loaded.experiment == nullptr) {
    if (!checkpoint.path.empty()) note_folder(recipe, checkpoint, diagnostics);
    return std::nullopt;
  }
  loaded.writing.set = loaded.experiment->train_data.get();
  if (!continues_text(loaded, diagnostics)) return std::nullopt;
  if (!set_weights(recipe, request, checkpoint, *loaded.experiment, diagnostics)) return std::nullopt;
  loaded.experiment->model->set_training(false);
  return loaded;
}

core::Result<std::string> conversation(const Prompt& prompt, const std::string& system, const ChatWriter& chat) {
  components::tokenizer::Chat said;
  for (const auto& [role, content] : prompt.messages) said.messages.push_back({role, content});
  if (said.messages.empty()) {
    if (!system.empty()) said.messages.push_back({"system", system});
    said.messages.push_back({"user", prompt.text});
  }
  if (said.messages.back().role == "assistant") return chat.render_unfinished(said);
  auto rendered = chat.render(said, /*answer=*/true);
  if (!rendered) return rendered.failure();
  return std::move(rendered.value().text);
}

/// What a prompt and the tokens behind it have.
struct Room {
  std::int64_t positions = 0;   ///< 0: no limit
  std::int64_t new_tokens = 0;  ///< that are asked for
  bool truncates = false;       ///< drop the first tokens of a prompt that leaves no room for those, at least a quarter
};

/// Cuts a prompt that leaves no room for a token, where that is asked for.
bool fits(Ids& ids, const std::string& name, const Room& room, core::Diagnostics& diagnostics) {
  const auto length = static_cast<std::int64_t>(ids.size());
  const std::int64_t positions = room.positions;
  if (positions <= 0) return true;
  if (room.truncates) {
    const std::int64_t kept = positions - std::max<std::int64_t>(1, std::min(room.new_tokens, positions / 4));
    if (length > kept) ids.erase(ids.begin(), ids.end() - kept);
    return true;
  }
  if (length < positions) return true;
  diagnostics.error({},
                    name + " has " + core::with_commas(length) + " tokens, and the model reads " +
                        core::with_commas(positions) + " with the new ones",
                    "shorten it, or add --truncate left");
  return false;
}

generation::BeamOptions::Stopping stopping_of(sections::generation::EarlyStopping when) {
  switch (when) {
    case sections::generation::EarlyStopping::kFalse: return generation::BeamOptions::Stopping::kEstimate;
    case sections::generation::EarlyStopping::kTrue: return generation::BeamOptions::Stopping::kFull;
    case sections::generation::EarlyStopping::kNever: return generation::BeamOptions::Stopping::kNever;
  }
  return generation::BeamOptions::Stopping::kEstimate;
}

class LoadedGenerator final : public TextGenerator {
 public:
  LoadedGenerator(Loaded loaded, const GenerateRequest& request)
      : loaded_(std::move(loaded)), request_(request), positions_(loaded_.experiment->model->positions()) {
    const resolve::Recipe& recipe = loaded_.experiment->recipe;
    if (recipe.generation) config_ = *recipe.generation;
    const auto& tokenizer = loaded_.writing.tokenizer;
    if (config_.eos_token_id) {
      for (const std::int64_t id : *config_.eos_token_id) end_ids_.insert(static_cast<std::int32_t>(id));
    } else if (tokenizer != nullptr && tokenizer->special().eos) {
      end_ids_.insert(*tokenizer->special().eos);
    }
    for (const components::TensorSpec& output : loaded_.experiment->model->outputs()) {
      if (output.name == components::kOutput && !output.shape.empty()) vocabulary_ = output.shape.back();
    }
    if (loaded_.chat != nullptr) {
      if (const auto id = tokenizer->id_of(loaded_.chat->end_of_turn())) end_ids_.insert(*id);
    }
  }

  std::optional<GenerationReport> generate(const std::vector<Prompt>& prompts, GenerationSink& sink,
                                           core::Diagnostics& diagnostics) override {
    const std::optional<std::vector<Ids>> encoded = encode(prompts, diagnostics);
    if (!encoded) return std::nullopt;
    warn_of_end_tokens(diagnostics);
    const auto prompt_count = static_cast<std::int64_t>(prompts.size());
    const std::int64_t samples = config_.num_return_sequences;
    distributed::ProcessGroup* const ranks = loaded_.experiment->ranks.get();
    const bool searches = config_.num_beams > 1;  // a prompt's texts come out of one search
    const std::vector<std::int64_t> mine = own_sequences(prompt_count, samples, ranks, searches);
    std::vector<Ids> sequences;
    std::vector<std::int64_t> numbers;
    for (const std::int64_t sequence : mine) {
      if (searches && sequence % samples != 0) continue;
      sequences.push_back((*encoded)[static_cast<std::size_t>(sequence / samples)]);
      numbers.push_back(next_sequence_ + sequence);
    }
    next_sequence_ += prompt_count * samples;
    if (generator_ == nullptr) {
      warm_up();
      generator_ = std::make_unique<generation::Generator>(*loaded_.experiment->model, options());
    }
    std::optional<TextCollector> collector;
    if (ranks != nullptr) collector.emplace(*ranks, sink);
    const auto decode = [this](std::span<const std::int32_t> ids) { return loaded_.writing.decode(ids); };
    std::function<void()> before_pass;
    if (collector) before_pass = [&collector] { collector->begin_pass(); };
    TextWriter writer({decode, request_, config_, end_ids_, before_pass}, mine, collector ? *collector : sink);
    const generation::Times times = generator_->generate(sequences, writer, numbers);
    const GenerationReport report = {times.prompt_tokens, times.new_tokens, times.decoded_tokens, times.prefill_seconds,
                                     times.decode_seconds};
    return collector ? collector->finish(report) : report;
  }

  std::optional<PromptSize> measure(const Prompt& prompt, core::Diagnostics& diagnostics) override {
    const std::optional<Ids> ids = encode(prompt, "the prompt", diagnostics);
    if (!ids) return std::nullopt;
    return PromptSize{static_cast<std::int64_t>(ids->size()), positions_};
  }

 private:
  /// The first pass makes copies of weights and touches their memory: what loading would do, and no rate of a prompt.
  void warm_up() const {
    struct Ignored final : generation::Receiver {
      bool token(std::size_t, std::int32_t, float) override { return false; }
      void ended(std::size_t, generation::End) override {}
    } ignored;
    generation::Options once = options();
    once.max_new_tokens = 1;
    once.beams = {};
    generation::Generator(*loaded_.experiment->model, once).generate(std::vector<Ids>{{0}}, ignored);
  }

  generation::Options options() const {
    generation::Options options;
    options.sampling = {config_.do_sample, config_.temperature, config_.top_k,
                        config_.top_p,     config_.min_p,       config_.repetition_penalty};
    options.left_out = {config_.no_repeat_ngram_size, config_.min_new_tokens};
    options.beams = {config_.num_beams, config_.length_penalty, stopping_of(config_.early_stopping),
                     config_.num_beams > 1 ? config_.num_return_sequences : 1};
    options.max_new_tokens = config_.max_new_tokens;
    options.seed = static_cast<std::uint64_t>(config_.seed);
    options.end_ids.assign(end_ids_.begin(), end_ids_.end());
    options.batch = request_.batch_size > 0 ? request_.batch_size : kBatch;
    options.positions = positions_;
    options.log_probabilities = request_.logprobs;
    options.autocast = train::stepper_options(loaded_.experiment->recipe).autocast;
    return options;
  }

  void warn_of_end_tokens(core::Diagnostics& diagnostics) {
    for (const std::int32_t id : end_ids_) {
      if (vocabulary_ == 0 || id < vocabulary_ || std::exchange(warned_, true)) continue;
      diagnostics.warning(loaded_.experiment->recipe.location("generation.eos_token_id"),
                          "the end token " + std::to_string(id) + " is beyond the model's vocabulary of " +
                              core::with_commas(vocabulary_) + ", so no text ends with it");
    }
  }

  /// Whether the model has all of the ids, which a tokenizer of another model has more of.
  bool knows(const Ids& ids, const std::string& name, core::Diagnostics& diagnostics) const {
    const auto beyond = std::find_if(ids.begin(), ids.end(), [this](std::int32_t id) { return id >= vocabulary_; });
    if (vocabulary_ == 0 || beyond == ids.end()) return true;
    diagnostics.error({},
                      name + " has the token " + std::to_string(*beyond) + ", and the model's vocabulary has " +
                          core::with_commas(vocabulary_) + ": the tokenizer is that of another model",
                      "name the tokenizer that belongs to the model");
    return false;
  }

  std::optional<Ids> encode(const Prompt& prompt, const std::string& name, core::Diagnostics& diagnostics) const {
    core::Result<std::string> text = prompt.text;
    if (loaded_.chat != nullptr) text = conversation(prompt, request_.system, *loaded_.chat);
    auto ids = text ? loaded_.writing.encode(text.value(), loaded_.chat == nullptr) : core::Result<Ids>(text.failure());
    if (ids && !ids.value().empty()) return as_source(std::move(ids.value()));
    if (ids) {
      diagnostics.error({}, name + " has no token", "give it a text");
    } else {
      diagnostics.error({}, name + ": " + ids.failure().message, ids.failure().hint);
    }
    return std::nullopt;
  }

  /// A source ends as those that the model was trained with.
  Ids as_source(Ids ids) const {
    const auto& tokenizer = loaded_.writing.tokenizer;
    if (!loaded_.experiment->model->decoder_start() || tokenizer == nullptr) return ids;
    const auto eos = tokenizer->settings().add_special_tokens ? tokenizer->special().eos : std::nullopt;
    if (eos && ids.back() != *eos) ids.push_back(*eos);
    return ids;
  }

  std::optional<std::vector<Ids>> encode(const std::vector<Prompt>& prompts, core::Diagnostics& diagnostics) const {
    std::vector<Ids> encoded;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const std::string name = prompts.size() > 1 ? "prompt " + std::to_string(i + 1) : "the prompt";
      auto ids = encode(prompts[i], name, diagnostics);
      if (ids && knows(*ids, name, diagnostics) &&
          fits(*ids, name, {positions_, config_.max_new_tokens, request_.truncate_left}, diagnostics)) {
        encoded.push_back(*std::move(ids));
      }
    }
    return diagnostics.has_errors() ? std::nullopt : std::make_optional(std::move(encoded));
  }

  Loaded loaded_;
  GenerateRequest request_;
  std::int64_t positions_;
  std::int64_t vocabulary_ = 0;  // 0: unknown
  bool warned_ = false;
  sections::generation::Config config_;
  std::set<std::int32_t> end_ids_;
  std::unique_ptr<generation::Generator> generator_;
  std::int64_t next_sequence_ = 0;
};

}  // namespace

std::unique_ptr<TextGenerator> open_generator(const resolve::Recipe& recipe, const GenerateRequest& request,
                                              core::Diagnostics& diagnostics) {
  auto loaded = load(recipe, request, diagnostics);
  if (!loaded) return nullptr;
  return std::make_unique<LoadedGenerator>(std::move(*loaded), request);
}

}  // namespace runner::engine
