#include "runner/cli/group/import/accelerate_import.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/resolve/sharding/fields.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using State = AccelerateOption::State;

constexpr const char* kMegatron = "tensor and pipeline parallel training are planned";
constexpr const char* kTpu = "roux does not train on TPUs";
constexpr const char* kPython = "there is no Python script: a recipe defines the training";
constexpr const char* kMpirun = "use `mpirun --hostfile FILE roux run RECIPE`";
constexpr const char* kDevice = "roux trains on CPUs and NVIDIA GPUs";
constexpr const char* kUseCpu = "set use_cpu: true to train on the CPU, or use a machine with an NVIDIA GPU";
constexpr const char* kFitsOne = "set distributed_type: 'NO' and num_processes: 1 if the model fits on one device";
constexpr const char* kNoGraph = "roux compiles no graph";
constexpr const char* kFuses = "remove it; `training.fused_kernels` fuses operations on the CPU";
constexpr const char* kInference = "it optimizes inference, not training";
constexpr const char* kConvert = "remove it; convert the trained weights (safetensors) for it";
constexpr const char* kLibTorch = "LibTorch uses the CPU's instructions without an extension";
constexpr const char* kCloud = "roux does not start cloud machines";
constexpr const char* kOwnMachine = "start a machine yourself and use `roux run` there";

/// A value of an option that roux does not take, as docs/devices.md lists them.
struct Refusal {
  const char* key;
  const char* value;  ///< in upper case; "" for any that is not "no"
  State state;
  const char* why;
  const char* instead;
};

constexpr Refusal kRefusals[] = {
    {"compute_environment", "AMAZON_SAGEMAKER", State::kRefused, kCloud, kOwnMachine},
    {"distributed_type", "MPS", State::kRefused, kDevice, "use a Linux machine, with use_cpu: true or an NVIDIA GPU"},
    {"distributed_type", "MULTI_XPU", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_NPU", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_MLU", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_SDAA", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_MUSA", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_HPU", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "MULTI_NEURON", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "XLA", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "TPU", State::kRefused, kDevice, kUseCpu},
    {"distributed_type", "DATA_PARALLEL", State::kRefused, kCloud, kOwnMachine},
    {"distributed_type", "MODEL_PARALLEL", State::kRefused, kCloud, kOwnMachine},
    {"distributed_type", "MEGATRON_LM", State::kLater, kMegatron, kFitsOne},
    {"use_xpu", "", State::kRefused, kDevice, kUseCpu},
    {"tpu", "", State::kRefused, kDevice, kUseCpu},
    {"ipex", "", State::kRefused, kLibTorch, "remove it; no setting is needed"},
    {"mpirun_ccl", "", State::kRefused, "processes communicate over Gloo",
     "remove it; `ddp.comm_hook: bf16` halves what they exchange"},
    {"dynamo_backend", "INDUCTOR", State::kFollows, "roux compiles no graph and runs fused kernels on the CPU",
     "`training.fused_kernels: false` turns them off"},
    {"dynamo_backend", "EAGER", State::kRefused, kNoGraph, "remove it; operations run eagerly without it"},
    {"dynamo_backend", "AOT_EAGER", State::kRefused, kNoGraph, "remove it; operations run eagerly without it"},
    {"dynamo_backend", "NVFUSER", State::kRefused, kNoGraph, kFuses},
    {"dynamo_backend", "AOT_NVFUSER", State::kRefused, kNoGraph, kFuses},
    {"dynamo_backend", "AOT_TS_NVFUSER", State::kRefused, kNoGraph, kFuses},
    {"dynamo_backend", "NVPRIMS_NVFUSER", State::kRefused, kNoGraph, kFuses},
    {"dynamo_backend", "OFI", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "FX2TRT", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "ONNXRT", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "TENSORRT", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "TVM", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "IPEX", State::kRefused, kInference, kConvert},
    {"dynamo_backend", "TORCHXLA_TRACE_ONCE", State::kRefused, kDevice, kUseCpu},
    {"dynamo_backend", "AOT_TORCHXLA_TRACE_ONCE", State::kRefused, kDevice, kUseCpu},
    {"dynamo_backend", "HPU_BACKEND", State::kRefused, kDevice, kUseCpu},
    {"dynamo_backend", "NEURON", State::kRefused, kDevice, kUseCpu},
};

/// The values of these options that roux takes.
constexpr std::pair<const char*, const char*> kTaken[] = {
    {"compute_environment", "LOCAL_MACHINE"},
    {"distributed_type", "NO"},
    {"distributed_type", "MULTI_CPU"},
    {"distributed_type", "MULTI_GPU"},
    {"distributed_type", "FSDP"},
    {"distributed_type", "DEEPSPEED"},
    {"dynamo_backend", "NO"},
    {"dynamo_backend", "CUDAGRAPHS"},
    {"dynamo_backend", "AOT_CUDAGRAPHS"},
};

/// `dynamo_backend: CUDAGRAPHS` where it is no `compile.cuda_graphs`.
constexpr Refusal kGraphsOfCpu = {"dynamo_backend", "", State::kFollows, "the training is on the CPU",
                                  "CUDA graphs are an NVIDIA GPU's"};
constexpr Refusal kGraphsOfProcesses = {"dynamo_backend", "", State::kLater,
                                        "the steps of several processes are not captured",
                                        "remove it; training runs without graphs"};

const AccelerateOption* find(const std::string& name) {
  const auto& all = accelerate_options();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& option) { return name == option.name; });
  return found == all.end() ? nullptr : &*found;
}

/// Sets `section.key`, or a key of the recipe itself.
void put(Node& recipe, const std::string& path, Node value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) {
    recipe.set(path, std::move(value));
    return;
  }
  const std::string section = path.substr(0, dot);
  Node block = recipe.find(section) != nullptr ? *recipe.find(section) : Node::mapping();
  block.set(path.substr(dot + 1), std::move(value));
  recipe.set(section, std::move(block));
}

/// Accelerate sometimes writes numbers as text.
Node as_written(const Node& value) {
  if (!value.is_string()) return value;
  const std::string& text = value.as_string();
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && text.size() < 10 ? Node::integer(std::stoll(text), value.location()) : value;
}

bool means_no(const Node& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return true;
  if (value.is_sequence() && value.items().empty()) return true;
  if (value.is_mapping()) {
    return std::all_of(value.entries().begin(), value.entries().end(),
                       [](const Node::Entry& entry) { return means_no(entry.value); });
  }
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  return value.is_string() && (text == "no" || text == "false" || text == "none" || text.empty());
}

/// The refusals of an option, whatever its value.
std::vector<Refusal> refusals_of(const std::string& name) {
  std::vector<Refusal> found;
  std::copy_if(std::begin(kRefusals), std::end(kRefusals), std::back_inserter(found),
               [&](const Refusal& refusal) { return name == refusal.key; });
  return found;
}

/// What an option of devices may hold; empty if it may hold anything.
std::vector<std::string> values_of(const std::string& name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : kTaken) {
    if (name == key) values.emplace_back(value);
  }
  for (const Refusal& refusal : refusals_of(name)) {
    if (*refusal.value != '\0') values.emplace_back(refusal.value);
  }
  return values;
}

const char* verdict(State state) {
  switch (state) {
    case State::kWorks: break;
    case State::kFollows: return "needs no setting";
    case State::kLater: return "is not supported yet";
    case State::kRefused: return "is refused";
  }
  return "";
}

/// The value of an equivalent key; null if it is the default.
Node translated(const AccelerateOption& option, const Node& value, core::Diagnostics& diagnostics) {
  const std::string name = option.name;
  // The launcher sets it.
  if (name == "num_processes" && value.is_integer() && value.as_integer() == -1) return Node::null();
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  if (name == "mixed_precision") {
    if (text == "no") return Node::string("32-true");  // as the questionnaire writes it: FSDP's own policy replaces it
    if (text == "fp16") return Node::string("16-mixed", value.location());
    if (text == "bf16") return Node::string("bf16-mixed", value.location());
    if (text == "fp8") {
      diagnostics.warning(value.location(), "mixed_precision fp8 is not supported yet",
                          "see the modes with `roux explain precision`");
    } else {
      diagnostics.error(value.location(), "mixed_precision must be no, fp16, bf16 or fp8, got " + value.scalar_text());
    }
    return Node::null();
  }
  if (name == "fp16") return means_no(value) ? Node::null() : Node::string("16-mixed");
  if (name == "use_cpu" || name == "cpu") return means_no(value) ? Node::null() : Node::string("cpu");
  if (name == "main_process_ip" || name == "log_dir" || name == "role") return value;
  return as_written(value);
}

const char* word(State state) {
  switch (state) {
    case State::kWorks: return "works";
    case State::kFollows: return "implied";
    case State::kLater: return "planned";
    case State::kRefused: return "refused";
  }
  return "";
}

/// One reading of a config file.
class Import {
 public:
  Import(const Node& config, core::Diagnostics& diagnostics) : config_(config), diagnostics_(diagnostics) {
    // As in Accelerate: with use_cpu, training runs on CPUs whatever the options for devices are.
    on_cpu_ = has("use_cpu") || has("cpu");
    processes_ = count("num_processes");
  }

  Node recipe() {
    for (const Node::Entry& entry : config_.entries()) take(entry);
    if (!on_cpu_) take_gpus();
    take_sharding();
    return recipe_;
  }

 private:
  bool has(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && !means_no(*value);
  }

  /// 1 where the file does not say.
  std::int64_t count(const char* name) const {
    const Node* value = config_.find(name);
    const Node number = value != nullptr ? as_written(*value) : Node::null();
    return number.is_integer() ? number.as_integer() : 1;
  }

  void take(const Node::Entry& entry) {
    if (is_sharding(entry.key)) return;  // take_sharding()
    const AccelerateOption* option = find(entry.key);
    if (option == nullptr) return refuse_name(entry);
    if (entry.value.is_string() && entry.value.as_string() == "None") return;  // as `accelerate env` prints null
    if (!refusals_of(entry.key).empty()) return judge(entry);
    if (option->state == State::kFollows || entry.value.is_null()) return;
    if (entry.key == "gpu_ids" || entry.key == "multi_gpu") return;  // take_gpus()
    if (option->state != State::kWorks) return refuse(entry, *option);
    if (Node value = translated(*option, entry.value, diagnostics_); !value.is_null()) {
      put(recipe_, option->key, std::move(value));
    }
  }

  void refuse_name(const Node::Entry& entry) {
    std::vector<std::string> names;
    for (const AccelerateOption& known : accelerate_options()) names.emplace_back(known.name);
    const std::string near = core::closest(entry.key, names);
    diagnostics_.error(entry.key_location, "Accelerate has no option " + entry.key,
                       near.empty() ? "" : "did you mean " + near + "?");
  }

  /// An option of a device or a compiler.
  void judge(const Node::Entry& entry) {
    if (means_no(entry.value)) return;
    const std::string value = core::upper(entry.value.scalar_text());
    if (entry.key == "dynamo_backend" && (value == "CUDAGRAPHS" || value == "AOT_CUDAGRAPHS"))
      return take_graphs(entry);
    for (const Refusal& refusal : refusals_of(entry.key)) {
      if (*refusal.value != '\0' && value != refusal.value) continue;
      if (on_cpu_ && refusal.why == std::string_view(kDevice)) return;  // it has what the hint asks for
      return tell(entry, refusal);
    }
    const std::vector<std::string> known = values_of(entry.key);
    if (std::find(known.begin(), known.end(), value) != known.end()) return;
    const std::string near = core::closest(value, known);
    diagnostics_.error(entry.value.location(),
                       entry.key + " must be one of " + core::joined(known) + ", got " + entry.value.scalar_text(),
                       near.empty() ? "" : "did you mean " + near + "?");
  }

  void take_graphs(const Node::Entry& entry) {
    if (on_cpu_) return tell(entry, kGraphsOfCpu);
    if (processes_ > 1) return tell(entry, kGraphsOfProcesses);
    put(recipe_, "compile.cuda_graphs", Node::boolean(true));
  }

  void tell(const Node::Entry& entry, const Refusal& refusal) {
    const std::string text =
        entry.key + " " + entry.value.scalar_text() + " " + verdict(refusal.state) + ": " + refusal.why;
    if (refusal.state == State::kFollows) {
      diagnostics_.notice(entry.value.location(), text, refusal.instead);
    } else {
      diagnostics_.warning(entry.value.location(), text, refusal.instead);
    }
  }

  void refuse(const Node::Entry& entry, const AccelerateOption& option) {
    const std::string parts = take_parts(entry);
    if (means_no(entry.value) || (entry.value.is_mapping() && parts.empty())) return;
    diagnostics_.warning(entry.key_location, entry.key + (parts.empty() ? "" : " (" + parts + ")") + " " +
                                                 verdict(option.state) + ": " + option.note);
  }

  /// Takes the keys of an unsupported section that are options of their own; returns the others.
  std::string take_parts(const Node::Entry& section) {
    std::string others;
    if (!section.value.is_mapping()) return others;
    for (Node::Entry part : section.value.entries()) {
      if (section.key == "dynamo_config" && !part.key.starts_with("dynamo_")) part.key = "dynamo_" + part.key;
      const AccelerateOption* option = find(part.key);
      const bool own = option != nullptr && (option->state == State::kWorks || option->state == State::kFollows ||
                                             !refusals_of(part.key).empty());
      if (own) {
        take(part);
      } else if (!means_no(part.value)) {
        others += (others.empty() ? "" : ", ") + part.key;
      }
    }
    return others;
  }

  /// The option that asks for GPUs without naming them; null if there is none.
  const Node::Entry* multi_gpu() const {
    for (const Node::Entry& entry : config_.entries()) {
      if (entry.key == "multi_gpu" && !means_no(entry.value)) return &entry;
      const std::string type = entry.key == "distributed_type" ? lower(entry.value.scalar_text()) : "";
      if (type == "multi_gpu" || type == "fsdp" || type == "deepspeed") return &entry;
    }
    return nullptr;
  }

  /// The GPUs that `gpu_ids` names; none for `all`.
  std::vector<std::string> gpus(const Node& ids) {
    std::vector<std::string> numbers;
    const std::string text = ids.scalar_text();
    if (ids.is_null() || lower(text) == "all") return numbers;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find(',', begin);
      numbers.emplace_back(core::trimmed(std::string_view(text).substr(begin, end - begin)));
      const std::string& number = numbers.back();
      const bool digits = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
      if (digits && number.size() <= 2) continue;
      diagnostics_.error(ids.location(),
                         "gpu_ids must be all, or numbers of GPUs with commas between them, got " + text);
      return {};
    }
    return numbers;
  }

  /// gpu_ids then names XPUs, NPUs, ...
  bool is_other_device() const {
    const Node* type = config_.find("distributed_type");
    const std::vector<Refusal> refusals = refusals_of("distributed_type");
    return type != nullptr && std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& refusal) {
             return core::upper(type->scalar_text()) == refusal.value && refusal.state == State::kRefused;
           });
  }

  void take_gpus() {
    if (is_other_device()) return;
    const Node* ids = config_.find("gpu_ids");
    const std::vector<std::string> numbers = ids != nullptr ? gpus(*ids) : std::vector<std::string>();
    if (numbers.empty() && multi_gpu() == nullptr) return;
    if (numbers.size() == 1 && processes_ <= 1) {
      put(recipe_, "device", Node::string("cuda:" + std::to_string(std::stoi(numbers.front()))));
      return;
    }
    put(recipe_, "device", Node::string("cuda"));
    if (numbers.empty()) return;
    std::vector<Node> list;
    for (const std::string& number : numbers) list.push_back(Node::integer(std::stoi(number)));
    put(recipe_, "launch.gpu_ids", Node::sequence(std::move(list)));
  }

  static bool is_sharding(const std::string& key) {
    return key == "use_fsdp" || key == "use_deepspeed" || resolve::is_fsdp_word(key) || resolve::is_deepspeed_word(key);
  }

  /// Words of FSDP or of DeepSpeed, of which Accelerate reads those that `distributed_type` names.
  void take_sharding() {
    const Node* type = config_.find("distributed_type");
    const std::string named = type != nullptr ? lower(type->scalar_text()) : "";
    const bool asks_fsdp = named == "fsdp" || has("use_fsdp"),
               asks_deepspeed = named == "deepspeed" || has("use_deepspeed");
    // Of a file without a type its words say it.
    const bool is_open = type == nullptr && !asks_fsdp && !asks_deepspeed;
    const bool is_fsdp = asks_fsdp || is_open, is_deepspeed = asks_deepspeed || is_open;
    std::vector<resolve::ShardingWord> fsdp, deepspeed;
    for (const Node::Entry& entry : config_.entries()) {
      if (resolve::is_fsdp_word(entry.key)) {
        if (is_fsdp) append(fsdp, resolve::fsdp_words(entry, diagnostics_));
        if (!is_fsdp) tell_idle(entry);
      } else if (resolve::is_deepspeed_word(entry.key)) {
        if (is_deepspeed) append(deepspeed, resolve::deepspeed_words(entry, diagnostics_));
        if (!is_deepspeed) tell_idle(entry);
      }
    }
    const core::Location& at = (type != nullptr ? *type : config_).location();
    if (asks_fsdp && fsdp.empty()) fsdp.push_back({"version", "FSDP", at, Node::null(), "FSDP", at});
    // The plugin's own stage, where no file says all.
    const Node* plugin = config_.find("deepspeed_config");
    const bool has_file = plugin != nullptr && plugin->find("deepspeed_config_file") != nullptr;
    const bool has_stage = std::any_of(deepspeed.begin(), deepspeed.end(),
                                       [](const auto& word) { return word.field.starts_with("zero_"); });
    if (asks_deepspeed && !has_file && !has_stage)
      deepspeed.push_back({"zero_stage", "DEEPSPEED without a zero_stage", at, Node::integer(2, at), "DEEPSPEED", at});
    resolve::ShardingOptions options{.missing = core::Severity::kWarning, .tells = false};
    const auto& components = registry::Registry::builtin();
    options.replaces_defaults = true;
    if (!fsdp.empty()) resolve::apply_fsdp(fsdp, recipe_, options, components, diagnostics_);
    options.replaces_defaults = false;
    if (!deepspeed.empty()) resolve::apply_deepspeed(deepspeed, recipe_, options, components, diagnostics_);
  }

  static void append(std::vector<resolve::ShardingWord>& all, std::vector<resolve::ShardingWord> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }

  void tell_idle(const Node::Entry& entry) {
    if (means_no(entry.value)) return;
    const Node* type = config_.find("distributed_type");
    const std::string named = type != nullptr ? "distributed_type is " + core::upper(type->scalar_text())
                                              : std::string("another flag says what is sharded");
    diagnostics_.notice(entry.key_location, entry.key + " has no effect: " + named,
                        "Accelerate does not read it either");
  }

  const Node& config_;
  core::Diagnostics& diagnostics_;
  Node recipe_ = Node::mapping();
  bool on_cpu_ = false;
  std::int64_t processes_ = 1;
};

}  // namespace

const std::vector<AccelerateOption>& accelerate_options() {
  static const std::vector<AccelerateOption> options = {
      {"compute_environment", State::kFollows, "", "`LOCAL_MACHINE`; Slurm and MPI are recognised; no cloud"},
      {"distributed_type", State::kWorks, "device",
       "`MULTI_GPU`, `FSDP` and `DEEPSPEED` are `device: cuda`, the last two with what they shard; `MEGATRON_LM` is "
       "planned; other devices are [refused](devices.md)"},
      {"num_processes", State::kWorks, "launch.num_processes",
       "on all machines, as in Accelerate; -1 (set by the launcher) needs no setting"},
      {"num_machines", State::kWorks, "launch.num_machines", ""},
      {"machine_rank", State::kWorks, "launch.machine_rank", ""},
      {"main_process_ip", State::kWorks, "launch.main_process_ip", ""},
      {"main_process_port", State::kWorks, "launch.main_process_port", ""},
      {"same_network", State::kFollows, "", "machines connect over TCP in any network"},
      {"rdzv_backend", State::kWorks, "launch.rdzv_backend", "`static` or `c10d`"},
      {"rdzv_conf", State::kRefused, "", "use `launch.timeout`, `join_timeout` and `min_machines`"},
      {"gpu_ids", State::kWorks, "device",
       "`'1'` is `device: cuda:1`, `'0,1'` is `launch.gpu_ids`; `all` needs no setting"},
      {"use_cpu", State::kWorks, "device", "`true` is `device: cpu`"},
      {"cpu", State::kWorks, "device", "the flag for `use_cpu`"},
      {"multi_gpu", State::kWorks, "device", "the flag for `MULTI_GPU`"},
      {"num_cpu_threads_per_process", State::kWorks, "launch.num_cpu_threads_per_process", ""},
      {"enable_cpu_affinity", State::kWorks, "launch.enable_cpu_affinity", "on any CPU"},
      {"mixed_precision", State::kWorks, "precision.mode",
       "`no`, `fp16`, `bf16` are `32-true`, `16-mixed`, `bf16-mixed`"},
      {"fp16", State::kWorks, "precision.mode", "old name: `true` is `16-mixed`"},
      {"downcast_bf16", State::kRefused, "", kTpu},
      {"max_restarts", State::kWorks, "launch.max_restarts", ""},
      {"monitor_interval", State::kWorks, "launch.monitor_interval",
       "between machines; processes are watched continuously"},
      {"log_dir", State::kWorks, "launch.log_dir", ""},
      {"tee", State::kWorks, "launch.tee", "0 to 3; the same for all processes"},
      {"role", State::kWorks, "launch.role", ""},
      {"debug", State::kWorks, "launch.debug", ""},
      {"quiet", State::kFollows, "", "`roux --quiet`"},
      {"gradient_accumulation_steps", State::kWorks, "training.gradient_accumulation_steps",
       "also in `deepspeed_config`"},
      {"gradient_clipping", State::kWorks, "training.clip_grad_norm", "also in `deepspeed_config`"},
      {"megatron_lm_gradient_clipping", State::kWorks, "training.clip_grad_norm", "in `megatron_lm_config`"},
      {"config_file", State::kFollows, "", "`ROUX_CONFIG_FILE`; `roux config`"},
      {"mpirun_config", State::kRefused, "", kMpirun},
      {"mpirun_hostfile", State::kRefused, "", kMpirun},
      {"mpirun_ccl", State::kRefused, "", "processes communicate over Gloo, not oneCCL"},
      {"ipex_config", State::kRefused, "", kLibTorch},
      {"ipex", State::kRefused, "", kLibTorch},
      {"use_xpu", State::kRefused, "", kDevice},
      {"dynamo_config", State::kRefused, "", kNoGraph},
      {"dynamo_backend", State::kWorks, "compile.cuda_graphs",
       "`cudagraphs`; `inductor`: `training.fused_kernels`; others are [refused](devices.md)"},
      {"dynamo_mode", State::kFollows, "", "only with `dynamo_backend`"},
      {"dynamo_use_dynamic", State::kFollows, "", "only with `dynamo_backend`"},
      {"dynamo_use_fullgraph", State::kFollows, "", "only with `dynamo_backend`"},
      {"dynamo_use_regional_compilation", State::kFollows, "", "only with `dynamo_backend`"},
      {"fp8_config", State::kLater, "", "training in 8 bits is planned"},
      {"use_fsdp", State::kWorks, "parallelism.shard", "the flag for `FSDP`"},
      {"fsdp_config", State::kWorks, "parallelism.shard", "[field by field](#fields-of-fsdp)"},
      {"use_deepspeed", State::kWorks, "parallelism.shard", "the flag for `DEEPSPEED`"},
      {"deepspeed_config", State::kWorks, "parallelism.shard", "[field by field](#fields-of-deepspeeds-plugin)"},
      {"use_megatron_lm", State::kLater, "", kMegatron},
      {"megatron_lm_config", State::kLater, "", kMegatron},
      {"parallelism_config", State::kLater, "", kMegatron},
      {"use_parallelism_config", State::kLater, "", kMegatron},
      {"tpu", State::kRefused, "", kTpu},
      {"tpu_cluster", State::kRefused, "", kTpu},
      {"tpu_env", State::kRefused, "", kTpu},
      {"tpu_name", State::kRefused, "", kTpu},
      {"tpu_use_cluster", State::kRefused, "", kTpu},
      {"tpu_use_sudo", State::kRefused, "", kTpu},
      {"tpu_vm", State::kRefused, "", kTpu},
      {"tpu_zone", State::kRefused, "", kTpu},
      {"vm", State::kRefused, "", kTpu},
      {"env", State::kRefused, "", kTpu},
      {"command_file", State::kRefused, "", kTpu},
      {"commands", State::kRefused, "", kTpu},
      {"main_training_function", State::kFollows, "", kPython},
      {"module", State::kRefused, "", kPython},
      {"no_python", State::kRefused, "", kPython},
      {"ec2_instance_type", State::kRefused, "", kCloud},
      {"iam_role_name", State::kRefused, "", kCloud},
      {"region", State::kRefused, "", kCloud},
      {"profile", State::kRefused, "", kCloud},
      {"sagemaker_inputs_file", State::kRefused, "", kCloud},
      {"sagemaker_metrics_file", State::kRefused, "", kCloud},
      {"additional_args", State::kRefused, "", kCloud},
      {"base_job_name", State::kRefused, "", kCloud},
      {"image_uri", State::kRefused, "", kCloud},
      {"py_version", State::kRefused, "", kCloud},
      {"pytorch_version", State::kRefused, "", kCloud},
      {"transformers_version", State::kRefused, "", kCloud},
      {"aws_access_key_id", State::kRefused, "", kCloud},
      {"aws_secret_access_key", State::kRefused, "", kCloud},
  };
  return options;
}

std::string accelerate_page() {
  std::string text =
      "<!-- Written by `roux config options` from the table that `roux config import` reads; a test compares it. -->\n"
      "# Options of Accelerate\n\n"
      "Options of `accelerate config` and `accelerate launch`, and their equivalents in roux. *implied*: no setting "
      "needed.\n`roux config import FILE` converts such a file to sections of a recipe.\n\n"
      "| Accelerate | roux | key | |\n| --- | --- | --- | --- |\n";
  for (const AccelerateOption& option : accelerate_options()) {
    const std::string key = option.key;
    text += "| `" + std::string(option.name) + "` | " + word(option.state) + " | " +
            (key.empty() ? "" : "`" + key + "`") + " | " + option.note + " |\n";
  }
  return text + "\n" + resolve::sharding_tables();
}

Node recipe_of_accelerate(const Node& config, core::Diagnostics& diagnostics) {
  return Import(config, diagnostics).recipe();
}

}  // namespace runner::cli
