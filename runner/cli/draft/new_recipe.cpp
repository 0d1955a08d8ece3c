#include "runner/cli/draft/new_recipe.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "runner/cli/draft/plain_text.h"
#include "runner/cli/draft/recipe_draft.h"
#include "runner/cli/draft/task.h"
#include "runner/cli/draft/wrong_records.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/group/import/local_files.h"
#include "runner/cli/local_device.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/hub/name.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;
using core::Node;

constexpr std::int64_t kLookedAt = 2000;  ///< records, of the first file
constexpr double kShareOfMemory = 0.8;    ///< that a training may take: data and other programs need some, too

bool fail(Session& session, const core::Failure& failure) {
  session.fail(failure.message, failure.hint);
  return false;
}

/// A question on the terminal, with numbers for answers.
std::optional<std::size_t> ask_on_terminal(const std::string& question, const std::vector<std::string>& answers) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return std::nullopt;
  while (true) {
    std::fprintf(stderr, "%s\n", question.c_str());
    for (std::size_t i = 0; i < answers.size(); ++i)
      std::fprintf(stderr, "  %zu  %s\n", i + 1, core::escape_for_terminal(answers[i]).c_str());
    std::fprintf(stderr, "number: ");
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (line == std::to_string(i + 1) || line == answers[i]) return i;
    }
  }
}

/// One call of the command.
class Drafting {
 public:
  Drafting(Session& session, const NewFlags& flags) : session_(session), flags_(flags) {}

  void run() {
    if (!can_write() || !read_columns() || !look_at_model()) return;
    engine_ = engine_or_fail(session_);
    if (engine_ == nullptr || !find_files() || !look_at_records() || !choose_format() || !choose_size()) return;
    write();
  }

 private:
  bool can_write() {
    std::error_code ignored;
    const bool exists = flags_.output != "-" && fs::exists(flags_.output, ignored);
    if (!exists || flags_.force) return true;
    return fail(session_, {flags_.output + " exists", "name another file with --output, or add --force"});
  }

  bool read_columns() {
    for (const std::string& given : flags_.columns) {
      std::istringstream parts(given);
      for (std::string each; std::getline(parts, each, ',');) {
        const std::size_t at = each.find('=');
        if (at == 0 || at == std::string::npos || at + 1 == each.size())
          return fail(session_,
                      {"--columns " + given + " is not COLUMN=FIELD", "write --columns text=body,label=stars"});
        request_.columns[each.substr(0, at)] = each.substr(at + 1);
      }
    }
    if (flags_.task.empty()) return true;
    request_.wanted = task_named(flags_.task);
    if (request_.wanted) return true;
    return fail(session_, {"no task is called " + core::quote(flags_.task), "there are " + core::joined(task_words())});
  }

  /// What the folder holds, without its weights.
  bool look_at_model() {
    const auto folder = session_.fetched_path(flags_.model, hub::Part::kSettings);
    if (!folder) return false;
    const std::string file = pretrained::config_of_folder(*folder);
    if (file.empty())
      return fail(session_, {"no " + std::string(pretrained::kConfigFile) + " in the folder " + *folder,
                             "name a folder of Transformers, or hf://OWNER/NAME"});
    core::Diagnostics diagnostics;
    const auto config = pretrained::read_config(file, diagnostics);
    session_.show(diagnostics);
    if (!config) {
      session_.exit_code = core::kExitUsage;
      return false;
    }
    const pretrained::ModelType& type = pretrained::model_type_of_config(*config);
    draft_.model = flags_.model;
    draft_.model_type = type.name;
    using Model = TaskRequest::Model;
    request_.model = type.has_head(pretrained::kCausalLm)    ? Model::kDecoder
                     : type.has_head(pretrained::kSeq2SeqLm) ? Model::kEncoderDecoder
                                                             : Model::kEncoder;
    draft_.is_encoder_decoder = request_.model == Model::kEncoderDecoder;
    const pretrained::Facts facts(*config);
    const std::int64_t longest = facts.longest_text(facts.integer("positions", 0));
    if (longest > 0) draft_.window = std::min(draft_.window, longest);
    return true;
  }

  static bool is_named_set(const std::string& path) { return path.starts_with("hf://datasets/"); }

  /// The files of a folder by their names, as `load_dataset` finds them.
  bool find_files() {
    std::error_code ignored;
    draft_.train = {flags_.data};
    if (!flags_.val.empty()) draft_.val = {flags_.val};
    draft_.is_whole_set = is_named_set(flags_.data);
    fs::path name = fs::path(flags_.data).filename();
    if (name.empty()) name = fs::path(flags_.data).parent_path().filename();
    while (name.has_extension()) name = name.stem();
    draft_.run_name = run_name_of(name.string());
    if (!fs::is_directory(flags_.data, ignored)) return true;
    const auto train = files_of_split(flags_.data, "", "train");
    if (!train) return fail(session_, train.failure());
    draft_.train = train.value().paths;
    for (const char* split : {"validation", "test"}) {
      if (!draft_.val.empty()) break;
      if (const auto files = files_of_split(flags_.data, "", split)) draft_.val = files.value().paths;
    }
    return true;
  }

  static std::string run_name_of(const std::string& text) {
    std::string name;
    for (const char c : text) {
      const bool fits =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      if (fits) name += c;
    }
    while (!name.empty() && (name.front() == '-' || name.front() == '_')) name.erase(0, 1);
    return name.empty() ? "run" : name.substr(0, 60);
  }

  bool look_at_records() {
    const auto paths = local_files();
    if (!paths) return false;
    if (take_plain_text(*paths)) return true;
    if (is_table_of_tabs(paths->front())) {
      return fail(session_,
                  {paths->front() + " has columns between tabs, and no empty line that ends a sentence of words",
                   "of a table: name it FILE.tsv; of words with tags: write an empty line behind each sentence"});
    }
    if (const auto whole = object_over_lines(paths->front())) {
      auto why = why_unread(facts_of({*whole}), request_.model);
      if (!why)
        why = core::Failure{"the file is one object over several lines, and a record stands in one line",
                            "write each record in a line: `jq -c . FILE > records.jsonl`"};
      return fail(session_, {flags_.data + ": " + why->message, why->hint});
    }
    core::Diagnostics diagnostics;
    const auto records = engine_->first_records(*paths, kLookedAt, diagnostics);
    session_.show(diagnostics);
    if (!records) {
      session_.exit_code = core::kExitUsage;
      return false;
    }
    const auto fields = facts_of(*records);
    if (const auto why = why_no_names(paths->front(), fields)) return fail(session_, *why);
    auto task = choose_task(fields, request_, ask_on_terminal);
    if (!task) return fail(session_, {flags_.data + ": " + task.failure().message, task.failure().hint});
    draft_.task = std::move(task.value());
    draft_.records = std::ssize(*records);
    return true;
  }

  /// A file of JSON that is written so.
  static std::optional<Node> object_over_lines(const std::string& path) {
    constexpr std::int64_t kBytesMax = 64 << 20;
    std::string first;
    std::ifstream file(path);
    if (!path.ends_with(".json") || !std::getline(file, first) || core::trimmed(first) != "{") return std::nullopt;
    const auto text = core::read_file(path, kBytesMax);
    auto whole = text ? core::parse_json(text.value()) : core::Result<Node>(text.failure());
    return whole ? std::optional(std::move(whole.value())) : std::nullopt;
  }

  /// Texts without a form, of which a window counts as a record.
  bool take_plain_text(const std::vector<std::string>& paths) {
    const auto& wanted = request_.wanted;
    const bool fits = !wanted || *wanted == Task::Kind::kText || *wanted == Task::Kind::kMaskedText;
    if (!fits || !request_.columns.empty()) return false;
    if (request_.model == TaskRequest::Model::kEncoderDecoder && !wanted) return false;
    if (!std::all_of(paths.begin(), paths.end(), is_plain_text)) return false;
    const bool is_encoder = request_.model == TaskRequest::Model::kEncoder;
    draft_.task = {.kind = is_encoder ? Task::Kind::kMaskedText : Task::Kind::kText, .of = "plain text"};
    draft_.is_plain_text = true;
    // The part that is held out has to fill a window.
    constexpr std::int64_t kBytesOfToken = 6;
    std::error_code ignored;
    const auto bytes = static_cast<std::int64_t>(fs::file_size(paths.front(), ignored));
    draft_.records = bytes / (kBytesOfToken * draft_.window);
    return true;
  }

  /// A data set of the Hub is fetched before it is looked at.
  std::optional<std::vector<std::string>> local_files() {
    if (!draft_.is_whole_set) return draft_.train;
    const auto source = std::make_shared<core::Source>();
    source->name = "new";
    source->text = "data: {train: {type: jsonl, path: " + core::to_json(Node::string(flags_.data), -1) + "}}\n";
    recipe::ComposeOptions options;
    options.use = recipe::Use{};
    session_.hub = HubUse::kCache;
    const auto recipe = session_.load(source, options);
    if (!recipe) return std::nullopt;
    std::vector<std::string> files;
    const Node* path = recipe->root.at_path("data.train.path");
    for (const Node& file : path->is_sequence() ? path->items() : std::vector<Node>{*path})
      files.push_back(file.as_string());
    return files;
  }

  std::optional<resolve::Recipe> loaded(core::Diagnostics& diagnostics) {
    const auto source = std::make_shared<core::Source>();
    source->name = flags_.output == "-" ? "recipe" : flags_.output;
    source->text = text_of(draft_);
    core::Diagnostics* const kept = std::exchange(session_.kept, &diagnostics);
    session_.hub = HubUse::kPlan;
    auto recipe = session_.load(source, recipe::ComposeOptions{});
    session_.kept = kept;
    if (recipe) recipe->settle_device(planned_device(session_, *recipe, 1).name);
    return recipe;
  }

  /// Shows what the last try said, and fails.
  bool give_up(const core::Diagnostics& diagnostics) {
    session_.show(diagnostics);
    session_.exit_code = core::kExitUsage;
    return false;
  }

  /// Conversations are written as the model's template has them, else in the first format whose tokens it knows.
  bool choose_format() {
    if (draft_.task.kind == Task::Kind::kChat || draft_.task.kind == Task::Kind::kPreferences ||
        draft_.task.kind == Task::Kind::kFeedback) {
      std::optional<core::Diagnostics> first;
      for (const char* format : {"", "chatml", "alpaca"}) {
        draft_.chat_format = format;
        core::Diagnostics diagnostics;
        const auto recipe = loaded(diagnostics);
        if (recipe && engine_->view_data(*recipe, {}, diagnostics)) return true;
        session_.exit_code = 0;
        if (!first) first = std::move(diagnostics);
      }
      return give_up(*first);
    }
    return true;
  }

  /// Bytes that a training of this draft needs where it trains, and how many there are there.
  struct Memory {
    std::int64_t needed = 0, has = 0;
    bool fits() const { return static_cast<double>(needed) <= kShareOfMemory * static_cast<double>(has); }
  };
  std::optional<Memory> memory_of(std::int64_t micro_batch_size) {
    draft_.micro_batch_size = micro_batch_size;
    core::Diagnostics diagnostics;
    const auto recipe = loaded(diagnostics);
    if (!recipe) {
      give_up(diagnostics);
      return std::nullopt;
    }
    const LocalDevice device = planned_device(session_, *recipe, 1);
    const auto plan = engine_->plan(*recipe, {device.gpu_memory_bytes}, diagnostics);
    if (!plan) {
      give_up(diagnostics);
      return std::nullopt;
    }
    fastest_ = plan->fastest_precision;
    const engine::MemoryPlan& memory = plan->memory;
    if (memory.gpu.memory == 0) return Memory{memory.process, core::memory_limit()};
    return Memory{memory.tensors + memory.gpu.workspace + memory.gpu.reserve + memory.gpu.graph, memory.gpu.memory};
  }

  /// Of one record at a time. A model may lack the head of a language model, which then begins at random.
  std::optional<Memory> first_memory() {
    if (draft_.task.kind != Task::Kind::kMaskedText) return memory_of(1);
    draft_.has_new_tensors = !is_complete();
    return memory_of(1);
  }
  bool is_complete() {
    core::Diagnostics diagnostics;
    const auto recipe = loaded(diagnostics);
    const bool is_good = recipe && engine_->plan(*recipe, {}, diagnostics);
    session_.exit_code = 0;
    return is_good;
  }

  /// All weights where they fit, else an adapter; and the largest micro-batch that fits.
  bool choose_size() {
    auto smallest = first_memory();
    if (!smallest) return false;
    if (fastest_ != "32-true") draft_.precision = fastest_;
    if (!smallest->fits()) {
      draft_.is_adapter = true;
      draft_.why_adapter = "all weights would take " + core::format_bytes(smallest->needed) + ", and here are " +
                           core::format_bytes(smallest->has);
      if (!(smallest = memory_of(1))) return false;
      too_large_ = smallest->fits() ? std::nullopt : smallest;
    }
    const std::int64_t most = global_batch_of(draft_);
    const auto all = memory_of(most);
    if (!all) return false;
    const double each = static_cast<double>(all->needed - smallest->needed) / static_cast<double>(most - 1);
    std::int64_t micro = most;
    const auto needed = [&](std::int64_t size) {
      return static_cast<double>(smallest->needed) + each * static_cast<double>(size - 1);
    };
    while (micro > 1 && needed(micro) > kShareOfMemory * static_cast<double>(all->has)) micro /= 2;
    draft_.micro_batch_size = micro;
    draft_.why_micro = std::to_string(micro) + " at a time take " +
                       core::format_bytes(static_cast<std::int64_t>(needed(micro))) + " of " +
                       core::format_bytes(all->has);
    return true;
  }

  void write() {
    const std::string text = text_of(draft_);
    if (flags_.output == "-") {
      std::fputs(text.c_str(), stdout);
    } else if (const auto written = core::write_output(flags_.output, text); !written) {
      return session_.fail(written.failure().message, written.failure().hint);
    }
    if (too_large_) {
      core::Diagnostics diagnostics;
      diagnostics.warning({},
                          "even with LoRA and one record at a time this takes " +
                              core::format_bytes(too_large_->needed) + ", and here are " +
                              core::format_bytes(too_large_->has),
                          "train it on a larger machine, or name a smaller model");
      session_.show(diagnostics);
    }
    if (flags_.output == "-" || session_.quiet) return;
    std::fprintf(stderr, "wrote %s: %s\nnext: `roux data show %s`, then `roux run %s`\n", flags_.output.c_str(),
                 summary().c_str(), flags_.output.c_str(), flags_.output.c_str());
  }

  std::string summary() const {
    return std::string(word_of(draft_.task.kind)) + " of " + draft_.task.of + ", " + draft_.model_type +
           (draft_.is_adapter ? " with LoRA" : ", all weights");
  }

  Session& session_;
  const NewFlags& flags_;
  engine::Engine* engine_ = nullptr;
  TaskRequest request_;
  RecipeDraft draft_;
  std::string fastest_;
  std::optional<Memory> too_large_;
};

}  // namespace

void write_new_recipe(Session& session, const NewFlags& flags) { Drafting(session, flags).run(); }

}  // namespace runner::cli
