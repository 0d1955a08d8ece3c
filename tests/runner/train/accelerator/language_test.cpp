// Models of language out of Transformers folders, their rows, adapters and losses on the pretended accelerator, beside
// the CPU. Part of the program `accelerator`.

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

constexpr double kClose = 1e-5;
constexpr double kLow = 2e-2;  // of bfloat16

std::string parity(const std::string& path) { return tests::source_dir() + "/tests/parity/" + path; }

/// Files of a training of language: rows of unlike lengths, conversations, pairs, labelled records.
class Place {
 public:
  Place() {
    std::string ids, masked, padded, holes, chat, pairs, labelled, classes, values, tags, digits, digit_records,
        written, sums;
    std::string pairs_of_ids, scores, choices, spans, words, word_records;
    for (int i = 0; i < 24; ++i) {
      const std::string number = std::to_string(i);
      std::string row;
      for (int j = 0; j < 3 + i * 5 % 11; ++j) row += (j > 0 ? ", " : "") + std::to_string((i * 7 + j * 3) % 40);
      ids += "{\"input_ids\": [" + row + "]}\n";
      std::string numbers;
      for (int j = 0; j < 3 + i * 5 % 11; ++j) numbers += (j > 0 ? " " : "") + std::to_string((i * 7 + j * 3) % 40);
      const char* const kWords[] = {"one", "two", "three", "four", "five", "hundred", "and"};
      std::string line;
      for (int j = 0; j < 3 + i * 5 % 8; ++j) line += (j > 0 ? " " : "") + std::string(kWords[(i * 3 + j * 5) % 7]);
      words += line + "\n";
      word_records += "{\"text\": \"" + line + "\"}\n";
      digits += numbers + "\n";
      digit_records += "{\"text\": \"" + numbers + "\"}\n";
      std::string labels;
      for (int j = 0; j < 3 + i * 5 % 11; ++j) {
        labels += (j > 0 ? ", " : "") + std::to_string(j % 2 == 0 ? (i * 7 + j * 3) % 40 : -100);
      }
      masked += "{\"input_ids\": [" + row + "], \"labels\": [" + labels + "]}\n";
      classes += "{\"input_ids\": [" + row + "], \"labels\": " + std::to_string(i * 7 % 3) + "}\n";
      values += "{\"input_ids\": [" + row + "], \"labels\": [" + std::to_string(i % 5) + ", 0.5]}\n";
      std::string of_words;
      for (int j = 0; j < 3 + i * 5 % 11; ++j) {
        of_words += (j > 0 ? ", " : "") + (j % 3 == 0 ? "-100" : std::to_string((i + j) % 3));
      }
      written += "{\"input_ids\": [" + row + "], \"labels\": [" + std::to_string(i * 7 % 40) + ", 8, " +
                 std::to_string(i % 5) + (i % 3 == 0 ? "" : ", 9, 1") + "]}\n";
      tags += "{\"input_ids\": [" + row + "], \"labels\": [" + of_words + "]}\n";
      const std::string other = std::to_string(i * 11 % 40) + ", " + std::to_string(i * 3 % 40);
      const std::string both = "{\"input_ids\": [[" + row + "], [" + other + "]]";
      pairs_of_ids += both + "}\n";
      scores += both + ", \"labels\": 0." + std::to_string(i % 10) + "}\n";
      choices += both + ", \"labels\": " + std::to_string(i * 5 % 2) + "}\n";
      spans += "{\"input_ids\": [" + row + "], \"labels\": [" + std::to_string(i % 2) + ", 2]}\n";
      std::string real;
      for (int j = 0; j < 3 + i * 5 % 11; ++j) real += ", 1";
      const std::string begin = "{\"input_ids\": [0, 0, " + row + "], \"attention_mask\": [";
      padded += begin + (i % 2 == 0 ? "0, 0" : "1, 1") + real + "]}\n";
      holes += begin + (i % 2 == 0 ? "0, 0" : "1, 0") + real + "]}\n";
      chat += R"({"messages": [{"role": "user", "content": "Is )" + number +
              R"( even?"}, {"role": "assistant", "content": "Look at digit )" + std::to_string(i * 7 % 9) + "\"}]}\n";
      pairs += R"({"prompt": "Is )" + number + R"( even?", "chosen": " Look at )" + std::to_string(i * 7 % 9) +
               R"(.", "rejected": " I do not know )" + number + ".\"}\n";
      sums +=
          R"({"prompt": "Is )" + number + R"( even?", "completion": "Look at )" + std::to_string(i * 7 % 9) + "\"}\n";
      labelled += R"({"prompt": "Is )" + number + R"( even?", "completion": " Look at )" + std::to_string(i * 7 % 9) +
                  R"(.", "label": )" + (i % 3 == 0 ? "false" : "true") + "}\n";
    }
    write("ids.jsonl", ids);
    write("masked.jsonl", masked);
    write("padded.jsonl", padded);
    write("holes.jsonl", holes);
    write("chat.jsonl", chat);
    write("pairs.jsonl", pairs);
    write("labelled.jsonl", labelled);
    write("classes.jsonl", classes);
    write("values.jsonl", values);
    write("tags.jsonl", tags);
    write("written.jsonl", written);
    write("sums.jsonl", sums);
    write("pairs_of_ids.jsonl", pairs_of_ids);
    write("scores.jsonl", scores);
    write("choices.jsonl", choices);
    write("spans.jsonl", spans);
    write("lines.txt", chat);
    write("tokenizer.json",
          core::read_file(tests::source_dir() + "/recipes/examples/data/tokenizer.json", 1 << 24).value());
    write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
    std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int i = 0; i < 10; ++i) pieces += std::to_string(i) + "\n##" + std::to_string(i) + "\n";
    write("vocab.txt", pieces);
    write("digits.txt", digits);
    write("digits.jsonl", digit_records);
    write("words.txt", words);
    write("words.jsonl", word_records);
  }
  void write(const std::string& name, const std::string& text) const {
    core::write_file_atomic(folder_ / name, text).value();
  }

  /// `body` without what all recipes here have, in a file.
  std::string recipe(const std::string& body) const {
    std::string text = body + "\noptimizer: {type: adamw, lr: 5.0e-3}\n" +
                       "training: {max_steps: 6, micro_batch_size: 4, clip_grad_norm: 1.0}\n" +
                       "eval: {eval_steps: 3, max_batches: 2}\ncheckpoint: {save_steps: 6}\nlogging_steps: 1\n";
    for (std::size_t at; (at = text.find("DIR")) != std::string::npos;) text.replace(at, 3, folder_.path());
    write("recipe.yaml", text);
    return folder_ / "recipe.yaml";
  }
  const tests::TempDir& folder() const { return folder_; }

 private:
  tests::TempDir folder_;
};

std::string of_ids(const std::string& model, const std::string& more = "", const std::string& file = "ids.jsonl") {
  const std::string set = "{type: ids, path: DIR/" + file + more + "}";
  return "init_from: " + parity("models/" + model) + "\nloss: cross_entropy\ndata: {train: " + set + ", val: " + set +
         "}";
}

const char* const kLlama = "model: {type: llama, n_layer: 2, n_head: 2, n_kv_head: 1, n_embd: 16, mlp_width: 24}\n";

std::string of_texts(const std::string& file, const std::string& more, const std::string& loss = "cross_entropy") {
  const std::string set = "{type: jsonl, path: DIR/" + file + ", max_seq_len: 48" + more + "}";
  return kLlama + ("tokenizer: {type: file, path: DIR/tokenizer.json}\nloss: " + loss) + "\ndata: {train: " + set +
         ", val: " + set + "}";
}

struct Case {
  std::string name, body;
  std::vector<std::string> sets = {};
  double tolerance = kClose;
};

/// Each on the CPU and on the device: the same losses.
void check_all(const std::vector<Case>& cases) {
  const Place place;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const std::string path = place.recipe(c.body);
      const Trained cpu = train_on(kCpu, path, c.sets, folder);
      const std::int64_t before = accelerator::kernels_run();
      const Trained device = train_on(kFirst, path, c.sets, folder);
      CHECK(accelerator::kernels_run() > before + 100);
      check_close(cpu, device, c.tolerance);
    }
  }
}

TEST_CASE("models out of folders train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* model :
       {"gpt2-default",        "gpt2-untied",      "llama-grouped",     "llama-llama3",  "llama-multi-query-tied",
        "mistral-window",      "qwen2-window",     "qwen2-layer-types", "qwen3-window",  "olmo2-default",
        "granite-default",     "smollm3-default",  "phi3-longrope",     "gemma-default", "gemma2-default",
        "gemma3_text-default", "mixtral-balanced", "qwen3_moe-sparse",  "bert-masked",   "roberta-masked",
        "distilbert-masked",   "modernbert-masked"}) {
    const std::string name = model;
    // The norms of these multiply with 1 + weight, about 2 here, and roundings grow as much in each branch.
    const double grown = name.starts_with("gemma") ? 3 : 1;
    const std::string recipe = of_ids(model, "", name.ends_with("masked") ? "masked.jsonl" : "ids.jsonl");
    cases.push_back({name, recipe, {}, grown * kClose});
    cases.push_back({name + " in bfloat16", recipe, {"precision=bf16-mixed"}, grown * kLow});
  }
  check_all(cases);
}

TEST_CASE("texts that are masked while they are read train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* model : {"bert-masked", "roberta-masked", "distilbert-masked", "modernbert-masked"}) {
    for (const char* set : {"type: ids, path: DIR/ids.jsonl, vocab_size: 40", "type: jsonl, path: DIR/digits.jsonl",
                            "type: text_lines, path: DIR/digits.txt", "type: text, path: DIR/digits.txt"}) {
      const std::string block = "{" + std::string(set) + ", max_seq_len: 16, transforms: " +
                                "[{type: mask_tokens, probability: 0.4, whole_words: true}]}";
      cases.push_back({std::string(model) + " " + set,
                       "init_from: " + parity("models/") + model +
                           "\ntokenizer: {type: file, path: DIR/vocab.txt}\nloss: cross_entropy\ndata: {train: " +
                           block + ", val: " + block + "}"});
    }
  }
  check_all(cases);
}

TEST_CASE("texts that spans are cut out of while they are read train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* set : {"type: jsonl, path: DIR/words.jsonl", "type: text_lines, path: DIR/words.txt",
                          "type: text, path: DIR/words.txt"}) {
    const std::string block = "{" + std::string(set) + ", max_seq_len: 12, transforms: " +
                              "[{type: span_corruption, noise_density: 0.3, mean_noise_span_length: 2}]}";
    const std::string recipe =
        "model: {type: transformers, head: seq2seq_lm, config: {model_type: t5, vocab_size: 48, d_model: 16, d_kv: 4, "
        "d_ff: 24, num_layers: 1, num_heads: 2, dropout_rate: 0.0, decoder_start_token_id: 0}}\ntokenizer: {type: "
        "file, path: " +
        tests::source_dir() + "/recipes/examples/data/numbers}\nloss: cross_entropy\ndata: {train: " + block +
        ", val: " + block + "}";
    cases.push_back({set, recipe});
    cases.push_back({std::string(set) + " in bfloat16", recipe, {"precision=bf16-mixed"}, kLow});
  }
  check_all(cases);
}

TEST_CASE("packed and padded rows train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* model : {"gpt2-default", "llama-grouped", "mistral-window", "qwen3_moe-balanced"}) {
    const std::string name = model;
    cases.push_back({name + " packed", of_ids(model, ", packing: true, max_seq_len: 20")});
    cases.push_back({name + " padded before", of_ids(model, "", "padded.jsonl")});
    cases.push_back({name + " padded in the middle", of_ids(model, "", "holes.jsonl")});
    cases.push_back({name + " packed and padded", of_ids(model, ", packing: true, max_seq_len: 20", "padded.jsonl")});
    cases.push_back({name + " packed in bfloat16",
                     of_ids(model, ", packing: true, max_seq_len: 20"),
                     {"precision=bf16-mixed"},
                     kLow});
    cases.push_back({name + " padded in bfloat16", of_ids(model, "", "padded.jsonl"), {"precision=bf16-mixed"}, kLow});
    cases.push_back({name + " packed, computed twice",
                     of_ids(model, ", packing: true, max_seq_len: 20"),
                     {"activation_checkpointing.mode=full"}});
  }
  cases.push_back({"conversations", of_texts("chat.jsonl", ", chat_format: chatml")});
  cases.push_back({"continued conversations",
                   of_texts("chat.jsonl", ", chat_format: chatml"),
                   {"eval.metrics=[rouge, bleu]", "eval.generate={max_new_tokens: 6}"}});
  cases.push_back({"packed conversations", of_texts("chat.jsonl", ", chat_format: chatml, packing: true")});
  cases.push_back({"a stream", of_texts("chat.jsonl", ", chat_format: chatml"), {"data.train.streaming=true"}});
  const std::string one = "{type: jsonl, path: DIR/chat.jsonl, max_seq_len: 48, chat_format: chatml, streaming: true";
  cases.push_back(
      {"a mix of streams", kLlama +
                               std::string("tokenizer: {type: file, path: DIR/tokenizer.json}\nloss: cross_entropy\n"
                                           "data: {train: {type: concat, weights: [2, 1], stopping: all, sets: [") +
                               one + ", packing: true}, " + one + ", packing: true, shuffle_buffer: 2}]}}"});
  check_all(cases);
}

TEST_CASE("heads of labels train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* model :
       {"bert-texts", "distilbert-texts", "modernbert-texts", "modernbert-texts-mean", "gpt2-texts"}) {
    cases.push_back({model, of_ids(model, "", "classes.jsonl"), {"eval.metrics=[accuracy, f1]"}});
  }
  for (const char* model : {"roberta-texts", "llama-texts"}) {
    cases.push_back({model, of_ids(model, "", "values.jsonl"), {"loss=mse", "eval.metrics=[mae, r2]"}});
  }
  for (const char* model :
       {"bert-tags", "roberta-tags", "distilbert-tags", "modernbert-tags", "gpt2-tags", "llama-tags"}) {
    cases.push_back({model, of_ids(model, "", "tags.jsonl"), {"eval.metrics=[accuracy]"}});
  }
  cases.push_back({"in bfloat16", of_ids("bert-texts", "", "classes.jsonl"), {"precision=bf16-mixed"}, kLow});
  cases.push_back({"by LoRA", of_ids("bert-texts", "", "classes.jsonl") + "\nadapters: [{type: lora, r: 4}]"});
  check_all(cases);
}

TEST_CASE("models with an encoder train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  for (const char* model : {"t5-default", "t5-gated"}) {
    const std::string name = model;
    cases.push_back({name, of_ids(model, "", "written.jsonl")});
    cases.push_back({name + " in bfloat16", of_ids(model, "", "written.jsonl"), {"precision=bf16-mixed"}, kLow});
    cases.push_back({name + ", computed twice",
                     of_ids(model, "", "written.jsonl"),
                     {"activation_checkpointing.mode=full", "activation_checkpointing.segment=1"}});
    cases.push_back({name + " by LoRA", of_ids(model, "", "written.jsonl") + "\nadapters: [{type: lora, r: 4}]"});
  }
  cases.push_back({"t5-unscaled", of_ids("t5-unscaled", "", "written.jsonl")});
  std::string texts = of_texts("sums.jsonl", "");
  texts.replace(0, std::string(kLlama).size(),
                "model: {type: transformers, head: seq2seq_lm, config: {model_type: t5, vocab_size: 512, d_model: 16, "
                "d_kv: 4, d_ff: 24, num_layers: 1, num_heads: 2, dropout_rate: 0.0, decoder_start_token_id: 0}}\n");
  cases.push_back({"texts of others, generated, too",
                   texts,
                   {"eval.metrics=[rouge, exact_match]", "eval.generate={max_new_tokens: 6}"}});
  check_all(cases);
}

/// Of a head that gives a folder's model, of a file of ids.
std::string of_head(const std::string& model, const std::string& loss, const std::string& file) {
  const std::string set = "{type: ids, path: DIR/" + file + "}";
  return "init_from: " + parity("models/" + model) + "\nloss: " + loss + "\ndata: {train: " + set + ", val: " + set +
         "}";
}

TEST_CASE("heads of several texts and of answers train on another device", "[.][accelerator]") {
  std::vector<Case> cases;
  // The bias of choices has a gradient of nothing but rounding, of which AdamW makes steps of any size.
  const char* const kPlain = "optimizer={type: sgd, lr: 0.05}";
  for (const char* model :
       {"bert-vectors", "roberta-vectors", "distilbert-vectors", "modernbert-vectors", "llama-vectors"}) {
    cases.push_back({model, of_head(model, "multiple_negatives", "pairs_of_ids.jsonl")});
  }
  cases.push_back({"scores", of_head("bert-vectors", "cosine_similarity", "scores.jsonl")});
  for (const char* model : {"bert-spans", "roberta-spans", "distilbert-spans", "modernbert-spans"}) {
    cases.push_back({model, of_head(model, "answer_span", "spans.jsonl")});
  }
  for (const char* model : {"bert-choices", "roberta-choices", "distilbert-choices", "modernbert-choices"}) {
    cases.push_back({model, of_head(model, "cross_entropy", "choices.jsonl"), {"eval.metrics=[accuracy]", kPlain}});
  }
  // A scale of 20 would make the roundings of cosines as much larger.
  const char* const unscaled = "{type: multiple_negatives, scale: 1}";
  for (const auto& [model, loss, file] : {std::tuple{"bert-vectors", unscaled, "pairs_of_ids.jsonl"},
                                          {"bert-spans", "answer_span", "spans.jsonl"},
                                          {"bert-choices", "cross_entropy", "choices.jsonl"}}) {
    cases.push_back({std::string(model) + " in bfloat16", of_head(model, loss, file), {"precision=bf16-mixed"}, kLow});
    cases.push_back({std::string(model) + " by LoRA", of_head(model, loss, file) + "\nadapters: [{type: lora, r: 4}]"});
  }
  check_all(cases);
}

TEST_CASE("sums of losses, rare classes and bits per byte train on another device", "[.][accelerator]") {
  check_all({
      {"a sum of losses",
       of_ids("qwen2-default"),
       {"loss={type: weighted_sum, losses: [cross_entropy, {type: cross_entropy, label_smoothing: 0.1}], weights: "
        "[1, 0.5]}"}},
      {"balanced classes",
       of_ids("bert-texts", "", "classes.jsonl"),
       {"loss={type: cross_entropy, balanced: true}", "loader.balance_classes=true"}},
      {"bits per byte", of_texts("chat.jsonl", ", chat_format: chatml"), {"eval.metrics=[bits_per_byte]"}},
  });
}

/// Of a folder whose weights bitsandbytes packed.
std::string of_packed(const std::string& model) {
  const std::string folder = parity("packed/" + model), set = "{type: ids, path: " + folder + "/ids.jsonl}";
  return "init_from: " + folder + "\ndata: {train: " + set + ", val: " + set + "}";
}

TEST_CASE("adapters and frozen weights train on another device", "[.][accelerator]") {
  check_all({
      {"LoRA", of_ids("llama-grouped") + "\nadapters: [{type: lora, r: 4, target_modules: all-linear}]"},
      {"LoRA in bfloat16",
       of_ids("llama-grouped") + "\nadapters: [{type: lora, r: 4, target_modules: all-linear}]",
       {"precision=bf16-mixed"},
       kLow},
      {"LoRA beside experts in 4 bits", of_ids("mixtral-stacked") +
                                            "\nquantization: {load_in_4bit: true, quantize_moe_experts: true}\n" +
                                            "adapters: [{type: lora, r: 4, target_modules: [q_proj, v_proj]}]"},
      {"LoRA on 4 bits", of_ids("llama-grouped") + "\nquantization: {load_in_4bit: true, bnb_4bit_quant_type: nf4, "
                                                   "bnb_4bit_use_double_quant: true}\nadapters: [{type: lora, r: 4}]"},
      {"LoRA on 8 bits",
       of_ids("llama-grouped") + "\nquantization: {load_in_8bit: true}\nadapters: [{type: lora, r: 4}]"},
      {"DoRA on 4 bits in bfloat16",
       of_ids("qwen2-default") + "\nquantization: {load_in_4bit: true}\nadapters: [{type: lora, r: 4, use_dora: true}]",
       {"precision=bf16-mixed"},
       kLow},
      {"LoRA on packed 4 bits", of_packed("llama-nf4-twice") + "\nadapters: [{type: lora, r: 4}]"},
      {"LoRA on packed 8 bits", of_packed("llama-int8") + "\nadapters: [{type: lora, r: 4}]"},
      {"DoRA", of_ids("qwen2-default") + "\nadapters: [{type: lora, r: 4, use_dora: true}]"},
      {"an adapter of PEFT",
       of_ids("gpt2-default") + "\nadapters: [{type: lora, path: " + parity("adapters/gpt2-default") + "}]"},
      {"several adapters", of_ids("gpt2-default") +
                               "\nadapters: [{type: lora, r: 4, target_modules: all-linear}, {type: lora, name: style, "
                               "r: 2, target_modules: [attn_qkv]}]"},
      {"frozen blocks", of_ids("gpt2-default"), {"training.freeze=[wte.*, h.0.*]"}},
  });
}

TEST_CASE("preferences train on another device", "[.][accelerator]") {
  std::string rewards = of_texts("pairs.jsonl", "", "reward");
  rewards.replace(
      0, std::string(kLlama).size(),
      "model: {type: transformers, head: sequence_classification, num_labels: 1, config: {model_type: llama, "
      "vocab_size: 512, hidden_size: 16, "
      "intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 64}}\n");
  check_all({
      {"of adapters", of_texts("pairs.jsonl", "", "{type: dpo, beta: 0.5}") + "\nadapters: [{type: lora, r: 4}]"},
      {"of whole models", of_texts("pairs.jsonl", "", "{type: dpo, beta: 0.5}")},
      {"several losses", of_texts("pairs.jsonl", "",
                                  "{type: dpo, beta: 0.5, ld_alpha: 0.5, losses: {ipo: 0.2, discopop: 1, hinge: 1, "
                                  "nca_pair: 1, sppo_hard: 0.1, apo_down: 1}}")},
      {"tokens beside pairs", of_texts("pairs.jsonl", "", "{type: dpo, losses: {sigmoid: 1, sft: 0.1}}")},
      {"CPO", of_texts("pairs.jsonl", "", "{type: cpo, beta: 0.5, label_smoothing: 0.1}")},
      {"SimPO, in micro-batches",
       of_texts("pairs.jsonl", "", "{type: cpo, loss_type: simpo, beta: 2}"),
       {"training.micro_batch_size=2", "training.global_batch_size=4"}},
      {"KTO", of_texts("labelled.jsonl", "", "{type: kto, beta: 0.5}")},
      {"KTO of pairs, in micro-batches",
       of_texts("pairs.jsonl", "", "{type: kto, beta: 0.5, desirable_weight: 1.5}"),
       {"training.micro_batch_size=2", "training.global_batch_size=4"}},
      {"ORPO", of_texts("pairs.jsonl", "", "orpo")},
      {"rewards", rewards},
      {"rewards, of adapters in micro-batches",
       rewards + "\nadapters: [{type: lora, r: 4}]",
       {"training.micro_batch_size=2", "training.global_batch_size=4"}},
      {"a stream of pairs", of_texts("pairs.jsonl", "", "orpo"), {"data.train.streaming=true"}},
      {"a stream, of adapters",
       of_texts("pairs.jsonl", "", "{type: dpo, beta: 0.5}") + "\nadapters: [{type: lora, r: 4}]",
       {"data.train.streaming=true", "training.micro_batch_size=2", "training.global_batch_size=4"}},
  });
}

}  // namespace
}  // namespace runner::train
