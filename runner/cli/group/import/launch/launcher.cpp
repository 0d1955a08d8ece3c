#include "runner/cli/group/import/launch/launcher.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/group/import/launch/accelerate_import.h"
#include "runner/cli/group/import/launch/foreign_file.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"
#include "runner/words/table.h"

namespace runner::cli {
namespace {

using core::Node;
using Kind = words::Outcome::Kind;

/// Short forms; of Accelerate and torchrun `-m`, `-t` and `-r`.
constexpr std::pair<const char*, const char*> kShort[] = {
    {"-H", "--hostfile"}, {"-i", "--include"},   {"-e", "--exclude"}, {"-m", "--module"},
    {"-t", "--tee"},      {"-r", "--redirects"}, {"-q", "--quiet"}};

enum class Launcher { kNone, kDeepSpeed, kTorchrun, kAccelerate };

const char* name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::kNone: break;
    case Launcher::kDeepSpeed: return "deepspeed";
    case Launcher::kTorchrun: return "torchrun";
    case Launcher::kAccelerate: return "accelerate launch";
  }
  return "";
}

bool is_flag(const ShellWord& word) {
  const std::string& text = word.text;
  return text.size() > 1 && text[0] == '-' && std::isdigit(static_cast<unsigned char>(text[1])) == 0;
}

/// Of `localhost:0,2`, the only machine that DeepSpeed knows without a hostfile.
std::optional<std::string> slots_here(const std::string& filter) {
  constexpr std::string_view kHere = "localhost:";
  if (!filter.starts_with(kHere) || filter.find('@') != std::string::npos) return std::nullopt;
  std::string slots = filter.substr(kHere.size());
  if (slots.empty() || slots.find_first_not_of("0123456789,") != std::string::npos) return std::nullopt;
  return slots;
}

class Reader {
 public:
  Reader(const std::shared_ptr<const core::Source>& source, core::Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  Node read(std::span<const ShellWord> words) {
    auto word = find_launcher(words);
    if (launcher_ == Launcher::kNone) return std::move(found_);
    for (++word; word != words.end();) {
      const core::Location location = at(*word);
      if (!is_flag(*word)) {
        diagnostics_.error(location, core::quote(word->text) + " before the script is not an option of " + name(),
                           "name the script behind the flags: a file of .py");
        return std::move(found_);
      }
      std::string flag = word->text;
      std::optional<std::string> value;
      if (const std::size_t equals = flag.find('='); equals != std::string::npos) {
        value = flag.substr(equals + 1);
        flag.resize(equals);
      }
      for (const auto& [brief, whole] : kShort) {
        if (flag == brief) flag = whole;
      }
      ++word;
      if (!value && word != words.end() && !is_flag(*word)) value = (word++)->text;
      take(flag, value, location);
    }
    settle();
    return std::move(found_);
  }

 private:
  std::string name() const { return name_of(launcher_); }

  core::Location at(const ShellWord& word) const {
    core::Location location;
    location.source = source_;
    location.line = word.line;
    location.column = 1;
    return location;
  }

  /// Its last word; tells of programs that start processes which roux joins.
  std::span<const ShellWord>::iterator find_launcher(std::span<const ShellWord> words) {
    for (auto word = words.begin(); word != words.end(); ++word) {
      const std::string program = word->text.substr(word->text.rfind('/') + 1);
      if (program == "mpirun" || program == "mpiexec" || program == "srun") {
        diagnostics_.notice(at(*word), program + " starts the processes, also those of roux",
                            "write `" + program + " ... roux run RECIPE` with the same flags");
      }
      if (program == "deepspeed" || program == "deepspeed.launcher.runner") launcher_ = Launcher::kDeepSpeed;
      if (program == "torchrun" || program == "torch.distributed.run" || program == "torch.distributed.launch")
        launcher_ = Launcher::kTorchrun;
      if (program == "accelerate-launch" || program == "accelerate.commands.launch") launcher_ = Launcher::kAccelerate;
      if (program == "accelerate" && std::next(word) != words.end() && std::next(word)->text == "launch") {
        launcher_ = Launcher::kAccelerate;
        ++word;
      }
      if (launcher_ == Launcher::kNone) continue;
      found_.set_location(at(*word));
      return word;
    }
    return words.end();
  }

  /// Those of schemas/words/launch.json; `accelerate launch` has the keys of its file.
  const std::vector<words::Word>& flags() const {
    if (launcher_ == Launcher::kAccelerate) return words::table_of("accelerate").words;
    const auto& launchers = words::table_of("launch").words;
    return words::find(launchers, launcher_ == Launcher::kDeepSpeed ? "deepspeed" : "torchrun")->inner;
  }

  void take(const std::string& flag, const std::optional<std::string>& value, const core::Location& location) {
    std::string key = flag.substr(flag.find_first_not_of('-'));
    std::replace(key.begin(), key.end(), '-', '_');
    Node node = value ? value_of_argument(source_, *value, location) : Node::boolean(true, location);
    if (launcher_ == Launcher::kAccelerate) return take_option(flag, key, std::move(node));
    const words::Word* known = words::find(flags(), key);
    if (known == nullptr) return refuse(flag, key, location);
    if (known->outcome.kind == Kind::kNoEffect) {
      diagnostics_.notice(location, flag + " of " + name() + " has no effect: " + known->outcome.text);
    } else if (known->outcome.kind == Kind::kRefused) {
      diagnostics_.error(location, flag + " of " + name() + " has no equivalent: " + known->outcome.text,
                         known->outcome.instead);
    } else if (!known->values.empty()) {  // a switch
      set(known->path, *known->values.front().second.value, location);
    } else if (needs_value(flag, value, location)) {
      if (known->rule.empty()) return set(known->path, std::move(node));
      read_.set(key, std::move(node), location);
    }
  }

  bool needs_value(const std::string& flag, const std::optional<std::string>& value, const core::Location& location) {
    if (value && !value->empty()) return true;
    diagnostics_.error(location, flag + " of " + name() + " needs a value", "write it behind the flag");
    return false;
  }

  void refuse(const std::string& flag, const std::string& key, const core::Location& location) {
    std::vector<std::string> names;
    for (const words::Word& one : flags()) {
      if (!one.key.ends_with('*')) names.push_back(one.key);
    }
    const std::string near = core::closest(key, names);
    diagnostics_.error(location, name() + " has no flag " + core::escape_for_terminal(flag),
                       near.empty() ? "write arguments of the script behind its name" : "did you mean --" + near + "?");
  }

  /// `accelerate launch` has the names of its file, and those of some sections of it.
  void take_option(const std::string& flag, const std::string& key, Node value) {
    const core::Location location = value.location();
    if (key == "config_file") return read_file(value);
    if (key == "no_tpu_cluster") return;  // the default
    for (const char* section : {"megatron_lm", "fp8", "parallelism"}) {
      if (!key.starts_with(std::string(section) + "_")) continue;
      Node& block = block_of(std::string(section) + "_config", location);
      block.set(key, std::move(value), location);
      return;
    }
    if (words::find(flags(), key) == nullptr) return refuse(flag, key, location);
    set(key, std::move(value));
  }

  Node& block_of(const std::string& key, const core::Location& location) {
    Node* there = found_.find(key);
    return there != nullptr && there->is_mapping() ? *there : found_.set(key, Node::mapping(location), location);
  }

  /// The flags go before what it says.
  void read_file(const Node& path) {
    has_file_ = true;
    const auto config = read_named_file(path, "--config_file", diagnostics_);
    if (!config) return;
    for (const Node::Entry& entry : config->entries()) {
      if (found_.find(entry.key) == nullptr) found_.set(entry.key, entry.value, entry.key_location);
    }
  }

  void set(const std::string& key, Node value) {
    const core::Location location = value.location();
    set(key, std::move(value), location);
  }
  void set(const std::string& key, Node value, const core::Location& location) {
    value.set_location(location);
    found_.set(key, std::move(value), location);
  }

  /// A whole number of at least 1; an error and nothing for anything else.
  std::optional<std::int64_t> count(const std::string& flag, const Node& value) {
    if (value.is_integer() && value.as_integer() >= 1) return value.as_integer();
    diagnostics_.error(
        value.location(),
        "--" + flag + " must be a whole number of at least 1, got " + core::escape_for_terminal(value.scalar_text()),
        "write how many");
    return std::nullopt;
  }

  /// What several flags say together.
  void settle() {
    switch (launcher_) {
      case Launcher::kNone: break;
      case Launcher::kDeepSpeed: settle_deepspeed(); break;
      case Launcher::kTorchrun: settle_torchrun(); break;
      case Launcher::kAccelerate: settle_accelerate(); break;
    }
  }

  void settle_accelerate() {
    const auto asks = [this](const char* key) {
      const Node* value = found_.find(key);
      return value != nullptr && value->is_bool() && value->as_bool();
    };
    // As many as there are GPUs, where no file says another number.
    const bool on_gpus = asks("multi_gpu") || asks("use_fsdp") || asks("use_deepspeed");
    const bool counts = found_.find("num_processes") != nullptr || found_.find("deepspeed_hostfile") != nullptr;
    if (on_gpus && !counts && !has_file_) automatic(found_.location());
  }

  void automatic(const core::Location& location) { set("launch.num_processes", Node::string("auto", location)); }

  /// `of_each`: processes of a machine.
  void set_processes(const std::string& flag, const Node& of_each, std::int64_t machines) {
    if (const auto each = count(flag, of_each))
      set("num_processes", Node::integer(*each * machines, of_each.location()));
  }

  void settle_deepspeed() {
    const Node* gpus = read_.find("num_gpus");
    if (gpus == nullptr) gpus = read_.find("num_accelerators");
    const Node *nodes = read_.find("num_nodes"), *include = read_.find("include"), *exclude = read_.find("exclude");
    if (found_.find("deepspeed_hostfile") != nullptr) {
      for (const Node* number : {gpus, nodes}) {
        if (number == nullptr) continue;
        diagnostics_.error(number->location(),
                           std::string(number == nodes ? "--num_nodes" : "--num_gpus") +
                               " takes the first of a hostfile, which has no equivalent",
                           "leave out what is not used in the hostfile, or choose it with --include");
      }
      if (include != nullptr) set("deepspeed_inclusion_filter", *include);
      if (exclude != nullptr) set("deepspeed_exclusion_filter", *exclude);
      return;
    }
    if (exclude != nullptr) {
      return diagnostics_.error(exclude->location(), "--exclude needs a hostfile, which says what there is",
                                "add --hostfile FILE, or name the GPUs with --include localhost:0,1");
    }
    if (include != nullptr) return include_here(*include, gpus);
    std::int64_t machines = 1;
    if (nodes != nullptr) {
      const auto number = count("num_nodes", *nodes);
      if (!number) return;
      machines = *number;
      set("num_machines", *nodes);
    }
    if (gpus != nullptr) return set_processes("num_gpus", *gpus, machines);
    automatic(found_.location());
  }

  void include_here(const Node& include, const Node* gpus) {
    const auto slots = slots_here(include.scalar_text());
    if (!slots) {
      return diagnostics_.error(
          include.location(),
          "--include " + core::escape_for_terminal(include.scalar_text()) + " chooses among the machines of a hostfile",
          "add --hostfile FILE, or write localhost:0,1 for GPUs of this machine");
    }
    if (gpus != nullptr) {
      return diagnostics_.error(gpus->location(), "--num_gpus cannot be combined with --include",
                                "keep one of the two");
    }
    set("gpu_ids", Node::string(*slots, include.location()));
    const auto commas = std::count(slots->begin(), slots->end(), ',');
    set("num_processes", Node::integer(commas + 1, include.location()));
  }

  void settle_torchrun() {
    const Node *each = read_.find("nproc_per_node"), *nodes = read_.find("nnodes"),
               *endpoint = read_.find("rdzv_endpoint"), *binding = read_.find("numa_binding");
    std::int64_t machines = 1;
    if (nodes != nullptr && !take_machines(*nodes, machines)) return;
    if (binding != nullptr) set("enable_cpu_affinity", Node::boolean(true, binding->location()));
    if (const Node* tee = found_.find("tee"); tee != nullptr && !tee->is_integer()) {
      diagnostics_.error(
          tee->location(),
          "--tee must be 0 to 3, the same for all processes, got " + core::escape_for_terminal(tee->scalar_text()),
          "write --tee 3 to see everything");
    }
    if (endpoint != nullptr) take_endpoint(*endpoint);
    if (each == nullptr) {
      if (machines > 1) set("num_processes", Node::integer(machines, nodes->location()));
      return;
    }
    const std::string word = each->scalar_text();
    if (word == "gpu" || word == "auto") return automatic(each->location());
    if (word == "cpu" || word == "xpu") {
      return diagnostics_.error(each->location(), "--nproc_per_node " + word + " has no equivalent",
                                "write how many processes, or gpu for one of each GPU");
    }
    set_processes("nproc_per_node", *each, machines);
  }

  /// `2`, or `1:4` for at least one and at most four.
  bool take_machines(const Node& nodes, std::int64_t& machines) {
    const std::string text = nodes.scalar_text();
    const std::size_t colon = text.find(':');
    const auto number = [&](const std::string& part) {
      return count("nnodes", value_of_argument(source_, part, nodes.location()));
    };
    const auto least = number(text.substr(0, colon));
    const auto most = colon == std::string::npos ? least : number(text.substr(colon + 1));
    if (!least || !most) return false;
    machines = *most;
    set("num_machines", Node::integer(*most, nodes.location()));
    if (*least < *most) set("launch.min_machines", Node::integer(*least, nodes.location()));
    return true;
  }

  void take_endpoint(const Node& endpoint) {
    const std::string text = endpoint.scalar_text();
    const std::size_t colon = text.rfind(':');
    set("main_process_ip", Node::string(text.substr(0, colon), endpoint.location()));
    if (colon == std::string::npos) return;
    const Node port = value_of_argument(source_, text.substr(colon + 1), endpoint.location());
    if (const auto number = count("rdzv_endpoint", port)) set("main_process_port", port);
  }

  const std::shared_ptr<const core::Source>& source_;
  core::Diagnostics& diagnostics_;
  Launcher launcher_ = Launcher::kNone;
  Node found_ = Node::mapping();
  Node read_ = Node::mapping();  ///< what settle() reads as one
  bool has_file_ = false;
};

/// Sets one value of a section.
void merge(Node& section, const std::string& path, const Node::Entry& entry, bool yields,
           const core::Location& launcher, core::Diagnostics& diagnostics) {
  const Node::Entry* there = section.find_entry(entry.key);
  if (there == nullptr || there->value.is_null() || !there->value.location().known()) {
    section.set(entry.key, entry.value, entry.key_location);
    return;
  }
  if (there->value.same_value(entry.value)) return;
  const std::string what = path + " is " + core::escape_for_terminal(entry.value.scalar_text()) +
                           " by the launcher, and " + core::escape_for_terminal(there->value.scalar_text()) +
                           " by the script's arguments";
  const core::Location& at = entry.value.location().known() ? entry.value.location() : launcher;
  if (yields) return diagnostics.notice(at, what, "the arguments count, as in the script");
  diagnostics.error(at, what, "keep one of the two");
}

/// Takes away what counts in a loop of Accelerate, and not beside the arguments of the Trainer.
/// Source  TrainingArguments.__post_init__ and Trainer.create_accelerator_and_postprocess of Transformers 5
void drop_idle(Node& options, Node& recipe, std::vector<words::Row>& rows) {
  const auto drop = [&](const char* key, const std::string& why) {
    const Node::Entry* entry = options.find_entry(key);
    if (entry == nullptr || !words::asks_for_something(entry->value)) return;
    rows.push_back({Kind::kNoEffect,
                    std::string("launcher.") + key,
                    core::escape_for_terminal(entry->value.scalar_text()),
                    why,
                    entry->key_location,
                    {}});
    options.erase(key);
  };
  drop("gradient_accumulation_steps",
       "the Trainer's own gradient_accumulation_steps counts, which is 1 unless written");
  const Node* mode = recipe.at_path("precision.mode");
  if (mode == nullptr) return;
  const std::string written = mode->scalar_text();
  for (const char* key : {"mixed_precision", "fp16"}) {
    if (written != "32-true") {
      drop(key, "the Trainer's own bf16, fp16 or dtype counts: precision.mode is " + written);
    } else if (options.find(key) != nullptr) {
      recipe.find("precision")->erase("mode");  // without bf16 and fp16 it asks the launcher
    }
  }
}

}  // namespace

Node value_of_argument(const std::shared_ptr<const core::Source>& source, const std::string& text,
                       const core::Location& location) {
  if (text == "True" || text == "true") return Node::boolean(true, location);
  if (text == "False" || text == "false") return Node::boolean(false, location);
  if (text == "None") return Node::null(location);
  core::Diagnostics ignored;
  const auto value = recipe::read_value(source, text, ignored);
  if (!value || ignored.has_errors() || text.empty()) return Node::string(text, location);
  if (value->is_integer()) return Node::integer(value->as_integer(), location);
  if (value->is_number()) return Node::floating(value->as_double(), location);
  const bool block = (text.front() == '{' || text.front() == '[') && !value->is_string();
  return block ? *value : Node::string(text, location);
}

Node read_launcher(std::span<const ShellWord> words, const std::shared_ptr<const core::Source>& source,
                   core::Diagnostics& diagnostics) {
  return Reader(source, diagnostics).read(words);
}

void take_launcher(const Node& launcher, bool is_trainer, Node& recipe, std::vector<words::Row>& rows,
                   core::Diagnostics& diagnostics) {
  Node options = Node::mapping(launcher.location()), keys = Node::mapping();
  for (const Node::Entry& entry : launcher.entries()) {
    Node& list = entry.key.starts_with("launch.") ? keys : options;
    list.set(entry.key, entry.value, entry.key_location);
  }
  if (is_trainer) drop_idle(options, recipe, rows);
  std::vector<words::Row> unused;  // the flags have names of their own
  Node sections = recipe_of_accelerate(options, unused, diagnostics);
  for (const Node::Entry& entry : keys.entries()) {
    if (sections.find("launch") == nullptr) sections.set("launch", Node::mapping(), entry.key_location);
    sections.find("launch")->set(entry.key.substr(std::string("launch.").size()), entry.value, entry.key_location);
  }
  for (const Node::Entry& section : sections.entries()) {
    if (!section.value.is_mapping()) {
      merge(recipe, section.key, section, /*yields=*/false, launcher.location(), diagnostics);
      continue;
    }
    const bool yields = section.key == "precision" || section.key == "training";
    if (recipe.find(section.key) == nullptr) recipe.set(section.key, Node::mapping(), section.key_location);
    for (const Node::Entry& entry : section.value.entries())
      merge(*recipe.find(section.key), section.key + "." + entry.key, entry, yields, launcher.location(), diagnostics);
  }
}

}  // namespace runner::cli
