#include "runner/words/reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/recipe/read.h"
#include "runner/words/draft.h"
#include "runner/words/table.h"
#include "runner/words/tables.h"

namespace runner::words {
namespace {

using core::Node;
using Kind = Outcome::Kind;

Node yaml(const std::string& text) {
  core::Diagnostics diagnostics;
  const auto source = std::make_shared<core::Source>(core::Source{"a.yml", text, core::Source::Kind::kFile});
  auto node = recipe::read_yaml(source, {}, diagnostics);
  REQUIRE(node);
  return *node;
}

/// Rules that read nothing.
std::map<std::string, Reader::Rule> no_rules(const Table& table) {
  std::map<std::string, Reader::Rule> rules;
  for (const Word& word : table.words) {
    if (!word.rule.empty()) rules[word.rule] = [](Reader&) {};
  }
  return rules;
}

struct Reading {
  std::string recipe, problems;
  std::vector<Row> rows;
};

Reading read(const std::string& text, const char* tool = "axolotl") {
  const Node config = yaml(text);
  const Table& table = table_of(tool);
  const auto rules = no_rules(table);
  core::Diagnostics diagnostics;
  Reader reader(table, config, rules, diagnostics);
  reader.read();
  return {core::to_json(reader.draft().ordered(), -1), core::render(diagnostics, {.excerpts = false}), reader.rows()};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("every word of a table says one thing", "[words]") {
  for (const std::string_view json : std::span(kTables, kTableCount)) {
    const auto parsed = core::parse_json(json);
    REQUIRE(parsed.ok());
    const std::function<void(const Node&)> check = [&](const Node& keys) {
      for (const Node::Entry& entry : keys.entries()) {
        INFO(entry.key);
        if (entry.value.is_string()) {  // the same as another, which words_of() asserts
          CHECK_FALSE(entry.value.as_string().empty());
          continue;
        }
        REQUIRE(entry.value.is_mapping());
        static const std::set<std::string> kKnown = {
            "path", "rule",    "needs",     "when",    "as",      "default", "nothing",   "values", "other", "keys",
            "to",   "changed", "no_effect", "planned", "refused", "instead", "meanwhile", "also",   "note",  "unless"};
        for (const Node::Entry& part : entry.value.entries()) {
          INFO(part.key);
          CHECK(kKnown.count(part.key) == 1);
        }
        const auto says = [&](const char* key) { return entry.value.find(key) != nullptr; };
        const int kinds = (says("no_effect") ? 1 : 0) + (says("planned") ? 1 : 0) + (says("refused") ? 1 : 0);
        CHECK(kinds <= 1);
        CHECK((kinds == 1 || says("path") || says("rule") || says("values") || says("keys")));
        if (says("refused") || says("planned")) CHECK(says("instead") != says("meanwhile"));
        if (says("keys") && entry.value.find("keys")->is_mapping()) check(*entry.value.find("keys"));
      }
    };
    check(*parsed.value().find("keys"));
  }
}

TEST_CASE("words become keys of a recipe", "[words]") {
  struct Case {
    const char* name;
    const char* config;
    const char* recipe;  ///< a part of it
  };
  static constexpr Case cases[] = {
      {"as it is", "learning_rate: 3e-4", R"("lr": 3e-4)"},
      {"by a table of values", "optimizer: paged_adamw_32bit", R"("type": "adamw")"},
      {"upper case", "optimizer: AdamW_Torch", R"("type": "adamw")"},
      {"a default of the tool", "learning_rate: 1", R"("seed": 42)"},
      {"null leaves it to the tool", "seed:", R"("seed": 42)"},
      {"a part of the training", "eval_steps: 0.05", R"("eval_steps": "0.05dur")"},
      {"a number of steps", "eval_steps: 7", R"("eval_steps": 7)"},
      {"times in an epoch", "saves_per_epoch: 4", R"("save_steps": "0.25ep")"},
      {"a block of a list", "adapter: lora\nlora_r: 4", R"("adapters": [{"type": "lora", "r": 4}])"},
      {"further keys", "rl: ipo", R"("loss": {"type": "dpo", "loss_type": "ipo"})"},
      {"a value that sets more", "weight_decay: 0.1", R"("no_decay": ["bias", "norm"])"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const Reading reading = read(c.config);
    INFO(reading.recipe);
    CHECK(reading.problems.empty());
    CHECK(has(reading.recipe, c.recipe));
  }
  CHECK_FALSE(has(read("weight_decay: 0.0").recipe, "no_decay"));
  CHECK_FALSE(has(read("evals_per_epoch: 0").recipe, "eval"));
}

TEST_CASE("a word counts beside the keys that it needs", "[words]") {
  struct Case {
    const char *config, *recipe;
    const char* idle;  ///< the row of a word that says nothing
  };
  static constexpr Case cases[] = {
      {"peft_config: {name: lora, r: 16}", R"("r": 16, "lora_alpha": 16, "lora_dropout": 0.05)", ""},
      {"peft_config: {name: lora, target_modules: \"q_proj, v_proj\"}", R"("target_modules": ["q_proj", "v_proj"])",
       ""},
      {"peft_config: {name: lora, adapter_name_or_path: [OWNER/NAME], r: 4}",
       R"("adapters": [{"type": "lora", "path": "hf://OWNER/NAME"}])", "with adapter_name_or_path it says nothing"},
      {"bf16: true", "", "it counts only beside dist_config.name: fsdp2 or fsdpturbo"},
      {"bf16: false\ndist_config: {name: fsdp2}", R"("precision": {"mode": "32-true"})", ""},
      {"dist_config: {name: fsdp2}", R"("precision": {"mode": "bf16-mixed"})", ""},
      {"dist_config: {name: deepspeed, reshard_after_forward: false}", "",
       "it counts only beside name: fsdp2 or fsdpturbo"},
      {"save_epochs: 0.5", R"("save_steps": "0.5ep")", ""},
      {"model: OWNER/NAME", R"("init_from": "hf://OWNER/NAME")", ""},
  };
  for (const Case& c : cases) {
    INFO(c.config);
    const Reading reading = read(c.config, "llama_factory_v1");
    INFO(reading.recipe);
    CHECK(reading.problems.empty());
    CHECK(has(reading.recipe, c.recipe));
    CHECK((*c.idle == '\0' || has(table_text(reading.rows, 120), c.idle)));
  }
  CHECK_FALSE(has(read("bf16: true", "llama_factory_v1").recipe, "precision"));
  CHECK_FALSE(has(read("seed: 1", "llama_factory_v1").recipe, "adapters"));
  CHECK(has(table_text(read("rl: dpo\nsimpo_gamma: 1").rows, 120), "it counts only beside rl: simpo"));
  CHECK(has(read("rl: kto\nrl_beta: 0.3\norpo_alpha: 0.2\nkto_desirable_weight: 2").recipe,
            R"("loss": {"type": "kto", "beta": 0.3, "desirable_weight": 2})"));
}

TEST_CASE("a default may be computed, and a condition a fact of the whole configuration", "[words]") {
  CHECK(has(read("lora_rank: 12", "llama_factory").recipe,
            R"("r": 12, "target_modules": "all-linear", "lora_alpha": 24)"));
  CHECK_FALSE(has(read("finetuning_type: full", "llama_factory").recipe, "adapters"));
  CHECK(has(table_text(read("finetuning_type: full\nlora_rank: 4", "llama_factory").rows, 120),
            "it counts only beside finetuning_type: lora"));
  const Node config = yaml("beta: 0.2\ncpo_alpha: 0\nld_alpha: 0.5");
  const Table& table = table_of("trl");
  const auto rules = no_rules(table);
  core::Diagnostics diagnostics;
  Reader reader(table, config, rules, diagnostics, {{"loss", "cpo"}});
  reader.read();
  CHECK(reader.draft().find("loss.beta")->as_double() == 0.2);
  CHECK(reader.draft().find("loss.cpo_alpha")->as_integer() == 0);
  CHECK(reader.draft().find("loss.ld_alpha") == nullptr);
  CHECK(reader.rows().back().text == "it counts only beside loss: dpo");
}

TEST_CASE("a key is in one part of the table, and refused where an error is", "[words]") {
  const Node config = yaml("learning_rate: -1\nseed: 3\nreport_to: [wandb, nothing]\n");
  const Table& table = table_of("trainer");
  const auto rules = no_rules(table);
  core::Diagnostics diagnostics;
  Reader reader(table, config, rules, diagnostics);
  reader.read();
  std::vector<Row> rows = reader.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].key == "report_to");
  CHECK(rows[2].kind == Kind::kRefused);
  diagnostics.error(config.find("learning_rate")->location(), "must be above 0");
  refuse_where_wrong(rows, diagnostics);
  CHECK(rows[0].kind == Kind::kRefused);
  CHECK(rows[0].text == "must be above 0");
  CHECK(rows[1].kind == Kind::kTaken);
}

TEST_CASE("each key has one row, and those that ask for nothing are counted", "[words]") {
  Reading reading = read(
      "lora_r: 8\nflash_attention: true\noptimizer: paged_adamw_8bit\nadapter:\nxformers_attention: false\n"
      "learning_rate: 1e-4\ntensor_parallel_size: 2\ngptq: true\nlearning_rat: 2\ncosine_constant_lr_ratio: 0");
  REQUIRE(reading.rows.size() == 10);
  std::erase_if(reading.rows, [](const Row& row) { return !row.asks; });
  REQUIRE(reading.rows.size() == 7);
  const auto kind = [&](std::size_t row) { return reading.rows[row].kind; };
  CHECK(kind(0) == Kind::kNoEffect);
  CHECK(reading.rows[0].text == "without adapter it says nothing");
  CHECK(kind(1) == Kind::kNoEffect);
  CHECK(kind(2) == Kind::kChanged);
  CHECK(kind(3) == Kind::kTaken);
  CHECK(kind(4) == Kind::kPlanned);
  CHECK(kind(5) == Kind::kRefused);
  CHECK(kind(6) == Kind::kRefused);
  CHECK(table_text(reading.rows, 120) ==
        "7 keys: 1 taken, 1 changed, 2 without effect, 1 planned, 2 refused\n"
        "taken\n"
        "  learning_rate: 1e-4          optimizer.lr\n"
        "changed\n"
        "  optimizer: paged_adamw_8bit  optimizer.type: adamw_8bit; the state stays in the memory of the device\n"
        "without effect\n"
        "  lora_r                       without adapter it says nothing\n"
        "  flash_attention              kernels for the same arithmetic; roux chooses its own\n"
        "planned\n"
        "  tensor_parallel_size         each process holds whole sequences and whole layers, which needs more "
        "memory\n"
        "refused\n"
        "  gptq                         roux does not quantize weights\n"
        "  learning_rat                 not a key of Axolotl\n");
}

TEST_CASE("what cannot be kept is an error with a remedy", "[words]") {
  CHECK(read("optimizer: adamw_torhc").problems ==
        "a.yml:1:12: error: optimizer adamw_torhc has no equivalent\n  hint: did you mean adamw_torch?\n");
  CHECK(read("relora: true").problems ==
        "a.yml:1:1: error: relora has no equivalent: weights are not merged and restarted\n  hint: remove it\n");
  CHECK(read("peft_config: lora", "llama_factory_v1").problems ==
        "a.yml:1:14: error: peft_config must be a mapping\n  hint: write peft_config: {name: ...}, or remove it\n");
  CHECK(read("dist_config: []", "llama_factory_v1").problems ==
        "a.yml:1:14: error: dist_config must be a mapping\n  hint: write dist_config: {name: ...}, or remove it\n");
  CHECK(read("peft: {loftq_config: {loftq_bits: 4}}").problems ==
        "a.yml:1:8: error: loftq_config has no equivalent: LoftQ begins from a quantized model\n"
        "  hint: remove it: A and B begin as in LoRA\n");
  CHECK(read("context_parallel_size: 4").problems ==
        "a.yml:1:24: warning: context_parallel_size 4 is not supported yet: each process holds whole sequences "
        "and whole layers, which needs more memory\n"
        "  hint: divide gradient_accumulation_steps by it, so that a step has as many samples as before\n");
}

TEST_CASE("a table that extends another has its words, and its own in their place", "[words]") {
  const auto& base = table_of("trainer").words;
  const auto& heir = table_of("llama_factory").words;
  for (const Word& word : base) {
    INFO(word.key);
    CHECK(find(heir, word.key) != nullptr);
  }
  CHECK(find(base, "cutoff_len") == nullptr);
  CHECK(find(heir, "cutoff_len")->rule == "data");
  CHECK(find(base, "max_length") == nullptr);
  CHECK(find(heir, "learning_rate")->fallback->as_double() == 5e-5);
  CHECK_FALSE(find(table_of("trl").words, "learning_rate")->fallback);  // of each method another
  CHECK(heir.front().key == base.front().key);
}

TEST_CASE("the same keys in another block lead to its own path", "[words]") {
  const auto path = [](const char* block, const char* key) {
    return find(find(table_of("axolotl").words, block)->inner, key)->path;
  };
  CHECK(path("datasets", "path") == "data.train.path");
  CHECK(path("test_datasets", "path") == "data.val.path");
  CHECK(path("test_datasets", "split") == "data.val.split");
  CHECK(path("pretraining_dataset", "path") == "data.train.path");
}

TEST_CASE("an entry may stand for all keys that begin so, or be the same as another", "[words]") {
  const auto& words = table_of("accelerate").words;
  CHECK(find(words, "fsdp_config")->key == "fsdp_config");
  CHECK(find(words, "fsdp_offload_params")->key == "fsdp_*");
  CHECK(find(words, "fsdb_config") == nullptr);
  CHECK(find(words, "ipex")->outcome.text == find(find(words, "ipex_config")->inner, "ipex")->outcome.text);
  CHECK(find(find(words, "dynamo_config")->inner, "backend")->values.size() ==
        find(words, "dynamo_backend")->values.size());
}

TEST_CASE("texts may be numbers, and ask for nothing", "[words]") {
  const Reading reading = read("num_machines: '2'\nnum_processes: two\ndowncast_bf16: 'no'\ntpu: None", "accelerate");
  CHECK(has(reading.recipe, R"("num_machines": 2)"));
  CHECK(has(reading.recipe, R"("num_processes": "two")"));  // the checks of a recipe say what it has to be
  CHECK(std::count_if(reading.rows.begin(), reading.rows.end(), [](const Row& row) { return row.asks; }) == 2);
  CHECK(table_text(reading.rows, 120).starts_with("4 keys: 2 taken, 2 ask for nothing\n"));
  CHECK(reading.problems.empty());
}

TEST_CASE("what has no effect beside another key is no problem", "[words]") {
  CHECK(read("distributed_type: MULTI_XPU", "accelerate").problems ==
        "a.yml:1:19: warning: distributed_type MULTI_XPU has no equivalent: roux trains on CPUs and NVIDIA GPUs\n"
        "  hint: set use_cpu: true to train on the CPU, or use a machine with an NVIDIA GPU\n");
  const Reading reading = read("distributed_type: MULTI_XPU\nuse_cpu: true", "accelerate");
  CHECK(reading.problems.empty());
  CHECK(reading.rows[0].text == "with use_cpu it says nothing");
}

TEST_CASE("a list and a text with commas have the same items", "[words]") {
  const auto joined = [](const Node& value) {
    std::string text;
    for (const Node& item : items_of(value)) text += "<" + item.scalar_text() + ">";
    return text;
  };
  CHECK(joined(Node::string("a, b,,c ,")) == "<a><b><c>");
  CHECK(joined(Node::string("")).empty());
  CHECK(joined(Node::sequence({Node::string("a, b"), Node::integer(3)})) == "<a, b><3>");
  CHECK(joined(Node::floating(0.5)) == "<0.5>");
}

}  // namespace
}  // namespace runner::words
