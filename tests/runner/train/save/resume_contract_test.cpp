#include "runner/train/save/resume_contract.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/registry/fragment.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/load.h"
#include "runner/train/save/data_changes.h"
#include "tests/support/folder.h"

namespace runner::train {
namespace {

using core::Node;

constexpr const char* kRecipe = R"(recipe_version: 1
run_name: contract
model: {type: mlp, hidden: [8]}
data:
  train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
lr_scheduler: {type: cosine, warmup_steps: 2}
training: {max_steps: 12, micro_batch_size: 8}
eval: {eval_steps: 5}
callbacks: [{type: early_stopping, monitor: val/loss, patience: 3}]
)";

resolve::Recipe load(const std::vector<std::string>& sets) {
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  core::Diagnostics diagnostics;
  auto recipe = resolve::load_recipe("recipe.yaml", options, registry::Registry::builtin(), diagnostics);
  INFO(core::render(diagnostics));
  REQUIRE(recipe.has_value());
  return std::move(*recipe);
}

/// A run folder as a training leaves it, with its recipe as it was written.
Recorded recorded_run(const tests::Folder& folder) {
  folder.write("recipe.yaml", kRecipe);
  folder.write("runs/contract-1/recipe.yaml", kRecipe);
  folder.write("runs/contract-1/resolved.json", load({}).resolved_json());
  Recorded recorded;
  recorded.recipe = resolve::read_recorded_recipe("runs/contract-1", "runs/contract-1/resolved.json").value();
  recorded.environment = ArithmeticEnvironment{2, "AVX2", "2.11.0"};
  recorded.provenance.emplace();
  recorded.provenance->total_steps = 12;
  return recorded;
}

std::string lines(const core::Diagnostics& diagnostics) {
  return core::render(diagnostics, {.color = false, .excerpts = false});
}

}  // namespace

TEST_CASE("auto stays on the device of the run", "[train][contract]") {
  const tests::Folder folder;
  Recorded recorded = recorded_run(folder);
  struct Case {
    const char *before, *now;
    bool differs;
  };
  static constexpr Case cases[] = {
      {"auto", "auto", false},   {"auto", "cpu", false},      {"cpu", "auto", false},  {"cuda:0", "auto", false},
      {"cuda:0", "cuda", false}, {"cuda:0", "cuda:1", false}, {"cuda:0", "cpu", true}, {"auto", "cuda", true},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.before << " and " << c.now) {
      recorded.recipe.set("device", Node::string(c.before));
      const resolve::Recipe present = load({std::string("device=") + c.now});
      const auto differences = list_differences(recorded, {present.root, *recorded.environment, {}});
      CHECK(differences.size() == (c.differs ? 1 : 0));
      CHECK(recorded_device(recorded.recipe) == (std::string(c.before) == "auto" ? "cpu" : c.before));
    }
  }
}

TEST_CASE("auto stays on the backend of the run", "[train][contract]") {
  const tests::Folder folder;
  Recorded recorded = recorded_run(folder);
  struct Case {
    const char *before, *now;
    int processes;
    bool differs;
  };
  static constexpr Case cases[] = {
      {"gloo", "auto", 2, false}, {"nccl", "auto", 2, false}, {"auto", "gloo", 2, false},
      {"auto", "nccl", 2, true},  {"nccl", "gloo", 2, true},  {"auto", "nccl", 1, false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.before << " and " << c.now << " of " << c.processes) {
      Node launch = Node::mapping();
      launch.set("num_processes", Node::integer(c.processes));
      launch.set("backend", Node::string(c.before));
      recorded.recipe.set("launch", launch);
      const resolve::Recipe present =
          load({"device=cuda", "launch.num_processes=2", std::string("launch.backend=") + c.now});
      bool differs = false;
      for (const Difference& difference : list_differences(recorded, {present.root, *recorded.environment, {}}))
        differs = differs || difference.key == "launch.backend";
      CHECK(differs == c.differs);
    }
  }
}

TEST_CASE("a key says that it has a rule where it has one", "[train][contract]") {
  using Keys = std::set<std::string>;
  const registry::Registry& registry = registry::Registry::builtin();
  const registry::Fragment& top = *registry.find("section", "recipe");
  std::vector<std::string> kinds = {"section"};
  for (const registry::Kind& kind : registry.kinds()) kinds.push_back(kind.name);
  Keys with_rule;
  for (const std::string& kind : kinds) {
    for (const std::string& name : registry.names(kind)) {
      registry::Fragment fragment = *registry.find(kind, name);
      // Only a section of the recipe has a path of its own.
      const bool is_section = kind == "section" && (name == "recipe" || top.find(name) != nullptr);
      const std::string above = name == "recipe" ? "" : is_section ? name + "." : kind + "/" + name + ".";
      registry::for_each_key(fragment, [&](const std::string& key, const registry::Property& property) {
        if (property.resume == registry::Property::Resume::kRule) with_rule.insert(above + key);
      });
    }
  }
  const std::vector<std::string> rules = resume_rules();
  CHECK(with_rule == Keys(rules.begin(), rules.end()));
  CHECK(rules.size() == with_rule.size());
}

TEST_CASE("each difference is classed by what it does to the next step", "[train][contract]") {
  const tests::Folder folder;
  const Recorded recorded = recorded_run(folder);
  struct Case {
    std::vector<std::string> sets;
    std::string key;
    Effect effect;
  };
  const Case cases[] = {
      {{"run_name=other"}, "run_name", Effect::kHarmless},
      {{"logging_steps=3"}, "logging_steps", Effect::kHarmless},
      {{"eval.eval_steps=4"}, "eval.eval_steps", Effect::kHarmless},
      {{"checkpoint.save_steps=4"}, "checkpoint.save_steps", Effect::kHarmless},
      {{"training.max_time=1h"}, "training.max_time", Effect::kHarmless},
      {{"activation_checkpointing=full"}, "activation_checkpointing.mode", Effect::kHarmless},
      {{"callbacks=[]"}, "callbacks", Effect::kHarmless},
      {{"callbacks[0].patience=5"}, "callbacks[0].patience", Effect::kHarmless},
      {{"data.val.num_samples=30"}, "data.val.num_samples", Effect::kHarmless},
      {{"data.test={type: synthetic, task: spirals, num_samples: 20, num_classes: 2}"}, "data.test", Effect::kHarmless},
      // The cosine takes its length from the training; written down, it stays what it was.
      {{"training.max_steps=24"}, "training.max_steps", Effect::kHarmless},
      {{"training.max_steps=24"}, "lr_scheduler.total_steps", Effect::kChangesResults},
      {{"training.max_steps=24", "lr_scheduler.total_steps=12"}, "training.max_steps", Effect::kHarmless},
      {{"lr_scheduler.total_steps=13"}, "lr_scheduler.total_steps", Effect::kChangesResults},
      {{"optimizer.lr=0.5"}, "optimizer.lr", Effect::kChangesResults},
      {{"seed=4"}, "seed", Effect::kChangesResults},
      {{"loader.shuffle=false"}, "loader.shuffle", Effect::kChangesResults},
      {{"precision.mode=bf16-mixed"}, "precision.mode", Effect::kChangesResults},
      {{"precision.scaler.init_scale=8"}, "precision.scaler.init_scale", Effect::kHarmless},
      {{"precision.autocast.enabled=false"}, "precision.autocast.enabled", Effect::kChangesResults},
      {{"precision.scaler.growth_interval=8"}, "precision.scaler.growth_interval", Effect::kChangesResults},
      {{"precision.mode=bf16-true"}, "precision.mode", Effect::kImpossible},
      {{"ddp.comm_hook=bf16"}, "ddp.comm_hook", Effect::kHarmless},  // of one process
      {{"ddp.comm_hook=bf16", "launch.num_processes=2"}, "ddp.comm_hook", Effect::kChangesResults},
      {{"ddp.check_reduction=true", "launch.num_processes=2"}, "ddp.check_reduction", Effect::kHarmless},
      {{"accumulation.sync_each_batch=true"}, "accumulation.sync_each_batch", Effect::kHarmless},
      {{"accumulation.mean=micro_batches"}, "accumulation.mean", Effect::kChangesResults},
      {{"launch.timeout=1h"}, "launch.timeout", Effect::kHarmless},
      {{"launch.num_processes=2"}, "launch.num_processes", Effect::kChangesResults},
      {{"loader.num_workers=2"}, "loader.num_workers", Effect::kHarmless},
      {{"deterministic=true"}, "deterministic", Effect::kChangesResults},
      {{"compile.cuda_graphs=true"}, "compile.cuda_graphs", Effect::kChangesResults},
      {{"training.clip_grad_norm=1"}, "training.clip_grad_norm", Effect::kChangesResults},
      {{"training.micro_batch_size=4"}, "training.micro_batch_size", Effect::kChangesResults},
      {{"data.train.noise=0.5"}, "data.train.noise", Effect::kChangesResults},
      {{"optimizer.type=adam"}, "optimizer.type", Effect::kImpossible},
      {{"training.freeze=[layers.0.*]"}, "training.freeze", Effect::kImpossible},
      {{"training.train_only=[layers.0.*]"}, "training.train_only", Effect::kImpossible},
      {{"model.hidden=[16]"}, "model.hidden[0]", Effect::kImpossible},
      {{"model.dropout=0.5"}, "model.dropout", Effect::kChangesResults},
      {{"weight_averaging=ema"}, "weight_averaging", Effect::kChangesResults},
      {{"device=cuda"}, "device", Effect::kChangesResults},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.key << " " << c.sets.front()) {
      const resolve::Recipe present = load(c.sets);
      const bool fits = c.effect != Effect::kImpossible;
      const auto differences = list_differences(recorded, {present.root, *recorded.environment, [fits] {
                                                             return fits ? "" : "layers.0.weight is [8, 2] there";
                                                           }});
      std::optional<Effect> found;
      for (const Difference& difference : differences) {
        if (difference.key == c.key) found = difference.effect;
      }
      REQUIRE(found.has_value());
      CHECK(to_text(*found) == to_text(c.effect));
    }
  }
}

TEST_CASE("all differences are reported at once, with their locations in both recipes", "[train][contract]") {
  const tests::Folder folder;
  const Recorded recorded = recorded_run(folder);
  std::string edited = kRecipe;
  edited.replace(edited.find("1.0e-2"), 6, "5.0e-1");
  edited.replace(edited.find("hidden: [8]"), 11, "hidden: [9]");
  edited += "logging_steps: 2\n";
  folder.write("recipe.yaml", edited);
  const resolve::Recipe present = load({});
  const auto differences = list_differences(
      recorded, {present.root, {1, "AVX512", "2.12.0"}, [] { return std::string("layers.0.weight is another"); }});
  core::Diagnostics diagnostics;
  CHECK(!may_resume(differences, {"cpu_capability"}, present.root, diagnostics));
  diagnostics.sort();
  const std::string there = "runs/contract-1/recipe.yaml";
  CHECK(lines(diagnostics) ==
        "recipe.yaml:3:29: error: model.hidden[0] was 8 (" + there +
            ":3:29) and is 9 now: not possible, the saved state does not fit (layers.0.weight is another)\n"
            "  hint: restore the old value to resume that run, or start a new one with `roux run RECIPE --new`\n"
            "recipe.yaml:8:30: error: optimizer.lr was 0.01 (" +
            there +
            ":8:30) and is 0.5 now: changes the results\n"
            "  hint: --allow-change optimizer.lr resumes with it, `roux run RECIPE --new` starts a new run\n"
            "recipe.yaml:13:16: notice: logging_steps was null (runs/contract-1/resolved.json:12:20) and is 2 now: "
            "harmless\n"
            "error: launch.num_cpu_threads_per_process was 2 and is 1 now: changes the results (the number of "
            "threads changes the summation order)\n"
            "  hint: OMP_NUM_THREADS=2 or --set launch.num_cpu_threads_per_process=2 restores the old number; "
            "--allow-change launch.num_cpu_threads_per_process resumes with it, `roux run RECIPE --new` starts a new "
            "run\n"
            "notice: cpu_capability was AVX2 and is AVX512 now: allowed, though it changes the results (other CPU "
            "instructions change the summation order)\n"
            "error: libtorch was 2.11.0 and is 2.12.0 now: changes the results (its kernels may round differently)\n"
            "  hint: --allow-change libtorch resumes with it, `roux run RECIPE --new` starts a new run\n");
}

TEST_CASE("a hint names all changes that a resume needs allowed", "[train][contract]") {
  const tests::Folder folder;
  const Recorded recorded = recorded_run(folder);
  const resolve::Recipe present = load({"optimizer.lr=0.5"});
  const auto differences = list_differences(recorded, {present.root, {1, "AVX512", "2.12.0"}, [] { return ""; }});
  core::Diagnostics diagnostics;
  CHECK(!may_resume(differences, {"cpu_capability", "launch.num_cpu_threads_per_process"}, present.root, diagnostics));
  const std::string all =
      "hint: --allow-change optimizer.lr --allow-change libtorch resumes with all changes, `roux run RECIPE --new` "
      "starts a new run\n";
  const std::string said = lines(diagnostics);
  INFO(said);
  const std::size_t first = said.find(all);
  CHECK(first != std::string::npos);
  CHECK(said.find(all, first + 1) != std::string::npos);
}

TEST_CASE("another CPU capability is reported with how to restore it, if possible", "[train][contract]") {
  struct Case {
    const char *before, *now, *hint;
  };
  static constexpr Case cases[] = {
      {"AVX512, kernels AVX512_BF16, own products", "AVX2, kernels AVX512_BF16, own products",
       "ATEN_CPU_CAPABILITY=avx512 selects the old ones if this CPU has them"},
      {"AVX512, kernels AVX512", "AVX512, kernels AMX_BF16", "resume on a CPU of the original kind"},
      {"AVX512, kernels AVX512, own products of float32", "AVX512, kernels AVX512",
       "resume on a CPU of the original kind"},
  };
  const tests::Folder folder;
  Recorded recorded = recorded_run(folder);
  const resolve::Recipe present = load({});
  for (const Case& c : cases) {
    recorded.environment->cpu_capability = c.before;
    ArithmeticEnvironment now = *recorded.environment;
    now.cpu_capability = c.now;
    const auto differences = list_differences(recorded, {present.root, now, {}});
    REQUIRE(differences.size() == 1);
    CHECK(to_text(differences.front()) == std::string("cpu_capability was ") + c.before + " and is " + c.now + " now");
    CHECK(differences.front().hint == c.hint);
  }
}

TEST_CASE("cores that are shared out among another number of processes are part of that one change",
          "[train][contract]") {
  const tests::Folder folder;
  Recorded recorded = recorded_run(folder);
  const auto keys_of = [&recorded](const std::vector<std::string>& sets) {
    const Present present{load(sets).resolved(), ArithmeticEnvironment{1, "AVX2", "2.11.0"},
                          [] { return std::string(); }};
    std::vector<std::string> keys;
    for (const Difference& difference : list_differences(recorded, present)) {
      if (difference.effect == Effect::kChangesResults) keys.push_back(difference.key);
    }
    return keys;
  };
  using Keys = std::vector<std::string>;
  const std::vector<std::string> two = {"launch.num_processes=2", "training.global_batch_size=8",
                                        "training.gradient_accumulation_steps=null"};
  CHECK(keys_of({}) == Keys{"launch.num_cpu_threads_per_process"});
  CHECK(keys_of(two) == Keys{"launch.num_processes"});
  auto written = two;
  written.emplace_back("launch.num_cpu_threads_per_process=1");
  CHECK(keys_of(written) == Keys{"launch.num_processes", "launch.num_cpu_threads_per_process"});
  // A newer branch with one process, which was stopped before it had saved anything.
  recorded.processes = 2;
  CHECK(keys_of({}).empty());
}

TEST_CASE("a length in epochs moves a schedule that follows it, unless its steps are written", "[train][contract]") {
  const tests::Folder folder;
  std::string text = kRecipe;
  text.replace(text.find("max_steps: 12"), 13, "max_epochs: 3");
  folder.write("recipe.yaml", text);
  Recorded recorded;
  recorded.recipe = load({}).root;
  recorded.provenance.emplace();
  recorded.provenance->total_steps = 15;
  const auto effects = [&](const std::vector<std::string>& sets) {
    std::string all;
    const resolve::Recipe present = load(sets);
    for (const Difference& difference : list_differences(recorded, {present.root, {}, {}})) {
      all += difference.key + " " + std::string(to_text(difference.effect)) + "\n";
    }
    return all;
  };
  CHECK(effects({"training.max_epochs=6"}) == "training.max_epochs changes the results\n");
  CHECK(effects({"training.max_epochs=6", "lr_scheduler.total_steps=15"}) ==
        "lr_scheduler.total_steps harmless\ntraining.max_epochs harmless\n");
  CHECK(effects({"training.max_epochs=6", "lr_scheduler=constant"}).find("max_epochs harmless") != std::string::npos);
}

TEST_CASE("a longer training resumes if no rate depends on its length", "[train][contract]") {
  const tests::Folder folder;
  for (const auto& [schedule, same] : {std::pair("{type: constant}", true),
                                       {"{type: step, step_size: 3}", true},
                                       {"{type: constant, warmup_ratio: 0.5}", false},
                                       {"{type: linear}", false}}) {
    std::string text = kRecipe;
    text.replace(text.find("{type: cosine, warmup_steps: 2}"), 31, schedule);
    folder.write("recipe.yaml", text);
    Recorded recorded;
    recorded.recipe = load({}).root;
    bool all_harmless = true;
    const resolve::Recipe present = load({"training.max_steps=24"});
    for (const Difference& difference : list_differences(recorded, {present.root, {}, {}})) {
      all_harmless = all_harmless && difference.effect == Effect::kHarmless;
    }
    INFO(schedule);
    CHECK(all_harmless == same);
  }
}

TEST_CASE("dropping an average reports which weights are evaluated from then on", "[train][contract]") {
  const tests::Folder folder;
  std::string text = kRecipe;
  text += "weight_averaging: ema\n";
  folder.write("recipe.yaml", text);
  Recorded recorded;
  recorded.recipe = load({}).root;
  const resolve::Recipe present = load({"weight_averaging=null"});
  const auto differences = list_differences(recorded, {present.root, {}, {}});
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].effect == Effect::kChangesResults);
  CHECK(differences[0].why == "the average is dropped: the trained weights are evaluated and saved again");
}

TEST_CASE("--allow-change lets the run resume, with a key or the section above it", "[train][contract]") {
  const tests::Folder folder;
  const Recorded recorded = recorded_run(folder);
  const resolve::Recipe present = load({"optimizer.lr=0.5", "logging_steps=2"});
  const auto differences = list_differences(recorded, {present.root, *recorded.environment, {}});
  struct Case {
    std::vector<std::string> allowed;
    std::string message;  ///< of the first error; "" when the run goes on
  };
  const Case cases[] = {
      {{}, "optimizer.lr was"},
      {{"optimizer.lr"}, ""},
      {{"optimizer"}, ""},
      {{"optimizer.lrr"}, "--allow-change optimizer.lrr: the recipe has no such key"},
      {{"seed"}, "optimizer.lr was"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.message << c.allowed.size()) {
      core::Diagnostics diagnostics;
      CHECK(may_resume(differences, c.allowed, present.root, diagnostics) == c.message.empty());
      if (c.message.empty()) {
        CHECK(diagnostics.all().empty());
      } else {
        CHECK(lines(diagnostics).find("error: " + c.message) != std::string::npos);
      }
    }
  }
}

TEST_CASE("data files that changed since are named, and those that were only touched are not", "[train][contract]") {
  const tests::Folder folder;
  folder.write("corpus.txt", "some text");
  folder.write("recipe.yaml", kRecipe);
  const resolve::Recipe recipe = load({});
  artifact::Provenance provenance;
  provenance.data = {artifact::read_data_file("train", "corpus.txt").value()};
  const auto changes = [&](const std::optional<std::vector<std::string>>& files = std::nullopt) {
    std::vector<std::string> texts;
    for (const Difference& change : list_data_changes(provenance, recipe.root, files)) texts.push_back(to_text(change));
    return texts;
  };
  CHECK(changes().empty());
  CHECK(changes({{"corpus.txt"}}).empty());
  CHECK(changes({{"corpus.txt", "more.txt"}}) ==
        std::vector<std::string>{"data.train was without more.txt and is with it now"});
  const auto written = std::filesystem::last_write_time("corpus.txt");
  std::filesystem::last_write_time("corpus.txt", written + std::chrono::seconds(5));
  CHECK(changes().empty());  // the same bytes
  folder.write("corpus.txt", "some tExt");
  std::filesystem::last_write_time("corpus.txt", written + std::chrono::seconds(9));
  REQUIRE(changes().size() == 1);
  CHECK(changes()[0].starts_with("data.train was corpus.txt with xxh128:"));
  folder.write("corpus.txt", "more text than before");
  CHECK(changes() == std::vector<std::string>{"data.train was corpus.txt of 9 bytes and is 21 bytes now"});
  std::filesystem::remove("corpus.txt");
  CHECK(changes() == std::vector<std::string>{"data.train was corpus.txt of 9 bytes and is gone or unreadable now"});
}

TEST_CASE("training data that is not here is looked for where the run was started", "[train][contract]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  folder.write("there/corpus.txt", "some text");
  const resolve::Recipe recipe = load({});
  artifact::Provenance provenance;
  provenance.data = {artifact::read_data_file("train", "there/corpus.txt").value()};
  provenance.data[0].path = "corpus.txt";
  const auto hint = [&] {
    const auto changes = list_data_changes(provenance, recipe.root, std::nullopt);
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].hint_is_all);  // --allow-change would lead to a file that is not found
    return changes[0].hint;
  };
  CHECK(hint() == "restore the file");
  provenance.folder = std::filesystem::absolute("there").string();
  CHECK(hint() ==
        "the run was started in " + provenance.folder + ", and the path is relative to that folder: start it there");
  std::filesystem::remove("there/corpus.txt");
  CHECK(hint().starts_with("restore the file; the run was started in " + provenance.folder));
}

TEST_CASE("the same training data at another path is the same", "[train][contract]") {
  const tests::Folder folder;
  folder.write("a.txt", "some text");
  folder.write("b.txt", "more text");
  artifact::Provenance provenance;
  for (const char* path : {"a.txt", "b.txt"}) {
    provenance.data.push_back(artifact::read_data_file("train", path).value());
  }
  folder.write("copy/a.txt", "some text");
  folder.write("copy/b.txt", "more text");
  const auto moved = with_training_data_at(provenance, {"copy/a.txt", "copy/b.txt"});
  REQUIRE(moved);
  CHECK(moved->data[1].path == "copy/b.txt");
  CHECK(moved->data[1].checksum == provenance.data[1].checksum);
  CHECK_FALSE(with_training_data_at(provenance, {"copy/b.txt", "copy/a.txt"}));  // another order
  CHECK_FALSE(with_training_data_at(provenance, {"copy/a.txt"}));
  CHECK_FALSE(with_training_data_at(provenance, {"copy/a.txt", "copy/none.txt"}));
  folder.write("copy/b.txt", "More text");
  CHECK_FALSE(with_training_data_at(provenance, {"copy/a.txt", "copy/b.txt"}));
  folder.write("copy/b.txt", "more text");
  provenance.data[0].checksum = "";  // the run was stopped before it had read the file
  CHECK_FALSE(may_have_moved(provenance));
  CHECK_FALSE(with_training_data_at(provenance, {"copy/a.txt", "copy/b.txt"}));

  const auto is_path = [](const char* key) {
    Difference difference;
    difference.key = key;
    return is_path_of_training_data(difference);
  };
  CHECK(is_path("data.train.path"));
  CHECK(is_path("data.train.path[0]"));
  CHECK(is_path("data.train.datasets[1].path"));
  CHECK_FALSE(is_path("data.train.max_seq_len"));
  CHECK_FALSE(is_path("data.val.path"));
}

}  // namespace runner::train
