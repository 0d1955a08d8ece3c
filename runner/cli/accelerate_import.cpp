#include "runner/cli/accelerate_import.h"

#include <algorithm>

#include "runner/core/suggest.h"
#include "runner/core/text.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using State = AccelerateOption::State;

constexpr const char* kFsdp = "every process holds all parameters; sharding (FSDP, ZeRO) is planned";
constexpr const char* kMegatron = "tensor and pipeline parallel training are planned";
constexpr const char* kTpu = "LibTorch has no TPU; training runs on CPUs";
constexpr const char* kPython = "there is no Python script: a recipe defines the training";
constexpr const char* kMpirun = "use `mpirun --hostfile FILE roux run RECIPE`";
constexpr const char* kDevice = "training runs on CPUs";
constexpr const char* kGpus = "training runs on CPUs; GPUs are planned";
constexpr const char* kCloud = "roux does not start cloud machines";

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

/// Whether training runs on CPUs whatever the options for GPUs are, as in Accelerate.
bool is_on_cpu(const Node& config) {
  return std::any_of(config.entries().begin(), config.entries().end(), [](const Node::Entry& entry) {
    return (entry.key == "use_cpu" || entry.key == "cpu") && !means_no(entry.value);
  });
}

/// Whether an entry chooses GPUs; `gpu_ids: all` chooses none.
bool chooses_gpus(const Node::Entry& entry) {
  const std::string text = entry.value.is_string() ? lower(entry.value.as_string()) : "";
  if (entry.key == "distributed_type") return text == "multi_gpu";
  return (entry.key == "gpu_ids" && text != "all" && !entry.value.is_null()) ||
         (entry.key == "multi_gpu" && !means_no(entry.value));
}

/// The value of an equivalent key; null if it is the default.
Node translated(const AccelerateOption& option, const Node& value, core::Diagnostics& diagnostics) {
  const std::string name = option.name;
  // The launcher sets it.
  if (name == "num_processes" && value.is_integer() && value.as_integer() == -1) return Node::null();
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  if (name == "mixed_precision") {
    if (text == "no") return Node::string("32-true");
    if (text == "fp16") return Node::string("16-mixed");
    if (text == "bf16") return Node::string("bf16-mixed");
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

void take(const Node::Entry& entry, Node& recipe, core::Diagnostics& diagnostics);

const char* word(State state) {
  switch (state) {
    case State::kWorks: return "works";
    case State::kFollows: return "implied";
    case State::kLater: return "planned";
    case State::kRefused: return "refused";
  }
  return "";
}

/// Warns about values of implied options that are not supported.
void look_at_what_follows(const Node::Entry& entry, core::Diagnostics& diagnostics) {
  const std::string value = entry.value.is_string() ? entry.value.as_string() : "";
  const auto tell = [&](const std::string& why) {
    diagnostics.warning(entry.value.location(), entry.key + " " + value + " " + why);
  };
  if (entry.key == "compute_environment" && value == "AMAZON_SAGEMAKER") tell(std::string("is refused: ") + kCloud);
  if (entry.key != "distributed_type" || value.empty()) return;
  if (value == "FSDP" || value == "DEEPSPEED") return tell(std::string("is not supported yet: ") + kFsdp);
  if (value == "MEGATRON_LM") return tell(std::string("is not supported yet: ") + kMegatron);
  if (value == "MULTI_GPU") return tell(std::string("is not supported yet: ") + kGpus);
  if (value == "NO" || value == "MULTI_CPU") return;
  tell(std::string("is refused: ") + kDevice);
}

/// Takes the keys of an unsupported section that have an equivalent; returns the others.
std::string take_parts(const Node& section, Node& recipe, core::Diagnostics& diagnostics) {
  std::string others;
  for (const Node::Entry& part : section.is_mapping() ? section.entries() : std::vector<Node::Entry>()) {
    const AccelerateOption* option = find(part.key);
    if (option != nullptr && option->state == State::kWorks) {
      take(part, recipe, diagnostics);
    } else if (!means_no(part.value)) {
      others += (others.empty() ? "" : ", ") + part.key;
    }
  }
  return others;
}

void take(const Node::Entry& entry, Node& recipe, core::Diagnostics& diagnostics) {
  const AccelerateOption* option = find(entry.key);
  if (option == nullptr) {
    std::vector<std::string> names;
    for (const AccelerateOption& known : accelerate_options()) names.emplace_back(known.name);
    const std::string near = core::closest(entry.key, names);
    return diagnostics.error(entry.key_location, "Accelerate has no option " + entry.key,
                             near.empty() ? "" : "did you mean " + near + "?");
  }
  if (option->state == State::kFollows) return look_at_what_follows(entry, diagnostics);
  if (entry.value.is_null()) return;
  if (option->state != State::kWorks) {
    const std::string parts = take_parts(entry.value, recipe, diagnostics);
    if (means_no(entry.value) || (entry.value.is_mapping() && parts.empty())) return;
    return diagnostics.warning(entry.key_location,
                               entry.key + (parts.empty() ? "" : " (" + parts + ")") +
                                   (option->state == State::kLater ? " is not supported yet: " : " is refused: ") +
                                   option->note);
  }
  if (Node value = translated(*option, entry.value, diagnostics); !value.is_null()) {
    put(recipe, option->key, std::move(value));
  }
}

}  // namespace

const std::vector<AccelerateOption>& accelerate_options() {
  static const std::vector<AccelerateOption> options = {
      {"compute_environment", State::kFollows, "", "`LOCAL_MACHINE`; Slurm and MPI are recognised; no cloud"},
      {"distributed_type", State::kFollows, "",
       "from `launch.num_processes`; `MULTI_GPU`, `FSDP`, `DEEPSPEED` and `MEGATRON_LM` are planned, others are "
       "refused"},
      {"num_processes", State::kWorks, "launch.num_processes",
       "on all machines, as in Accelerate; -1 (set by the launcher) needs no setting"},
      {"num_machines", State::kWorks, "launch.num_machines", ""},
      {"machine_rank", State::kWorks, "launch.machine_rank", ""},
      {"main_process_ip", State::kWorks, "launch.main_process_ip", ""},
      {"main_process_port", State::kWorks, "launch.main_process_port", ""},
      {"same_network", State::kFollows, "", "machines connect over TCP in any network"},
      {"rdzv_backend", State::kWorks, "launch.rdzv_backend", "`static` or `c10d`"},
      {"rdzv_conf", State::kRefused, "", "use `launch.timeout`, `join_timeout` and `min_machines`"},
      {"gpu_ids", State::kLater, "", kGpus},
      {"use_cpu", State::kWorks, "device", "`true` is `device: cpu`"},
      {"cpu", State::kWorks, "device", "the flag for `use_cpu`"},
      {"multi_gpu", State::kLater, "", kGpus},
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
      {"ipex_config", State::kRefused, "", "the CPU's instructions are used without an extension"},
      {"ipex", State::kRefused, "", "the CPU's instructions are used without an extension"},
      {"use_xpu", State::kRefused, "", kDevice},
      {"dynamo_config", State::kRefused, "", "there is no graph to compile; see `training.fused_kernels`"},
      {"dynamo_backend", State::kRefused, "", "there is no graph to compile; see `training.fused_kernels`"},
      {"fp8_config", State::kLater, "", "training in 8 bits is planned"},
      {"use_fsdp", State::kLater, "", kFsdp},
      {"fsdp_config", State::kLater, "", kFsdp},
      {"use_deepspeed", State::kLater, "", kFsdp},
      {"deepspeed_config", State::kLater, "", kFsdp},
      {"deepspeed_config_file", State::kLater, "", kFsdp},
      {"deepspeed_hostfile", State::kLater, "", "`launch.hosts` lists hosts"},
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
  return text;
}

Node recipe_of_accelerate(const Node& config, core::Diagnostics& diagnostics) {
  Node recipe = Node::mapping();
  const bool on_cpu = is_on_cpu(config);
  for (const Node::Entry& entry : config.entries()) {
    const bool is_default = entry.key == "gpu_ids" && !chooses_gpus(entry);
    if (!is_default && !(on_cpu && chooses_gpus(entry))) take(entry, recipe, diagnostics);
  }
  return recipe;
}

}  // namespace runner::cli
