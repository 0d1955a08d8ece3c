// Throws mutated recipes at everything that reads one: text, composition, validation, the rules between sections. In
// between come damaged files of tensors and of data sets, configurations of Transformers, indexes of shards, tokenizers
// and chat templates, and responses of the Hugging Face Hub.
//
//   fuzz_recipe [--seconds N] [--seed S] [--save FILE] [FILE...]
//
// A FILE that ends in .tensors is one of tensors, in .data one of a data set, in .config a configuration, in .index an
// index, in .tokenizer one of a tokenizer, in .jinja a chat template, in .answer a response; so does the saved one end
// then.
//
// A worker runs the cases; this process watches it from outside, so that a crash, an abort and an endless loop all
// leave the text that caused them. With FILEs, those are run once and nothing is mutated.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "runner/artifact/io/io.h"
#include "runner/core/diagnostics.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/gguf/file_writer.h"
#include "runner/recipe/compose.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/resolve/consistency.h"
#include "tests/fuzz/answer_files.h"
#include "tests/fuzz/data_files.h"
#include "tests/fuzz/json_files.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/template_texts.h"
#include "tests/fuzz/tensor_files.h"
#include "tests/fuzz/tokenizer_files.h"

namespace {

using runner::core::Source;

constexpr std::int64_t kCaseSecondsMax = 2;  // of the worker's processor time
constexpr std::size_t kTextMax = 1 << 17;
constexpr int kFilesBetween = 20;  // a file takes much less time than a recipe
constexpr int kTokenizersBetween = 5;
constexpr int kTemplatesBetween = 10;
constexpr int kGenerationsBetween = 5;  // each is written to a disk

/// A reader, and how its cases end when they are saved; a recipe's have no ending.
struct Reader {
  const char* ending;
  void (*read)(const std::string& text);
};
void run_case(const std::string& text);
constexpr Reader kReaders[] = {{"", run_case},
                               {".tensors", tests::TensorFiles::read},
                               {".config", tests::read_config_text},
                               {".index", tests::read_index_text},
                               {".generation", tests::read_generation_text},
                               {".adapter", tests::read_adapter_text},
                               {".tokenizer", tests::TokenizerFiles::read},
                               {".data", tests::read_data_file},
                               {".answer", tests::AnswerFiles::read},
                               {".jinja", tests::TemplateTexts::read}};
enum Kind : std::size_t {
  kRecipe,
  kTensors,
  kConfig,
  kIndex,
  kGeneration,
  kAdapter,
  kTokenizer,
  kData,
  kAnswer,
  kTemplate
};

// What the worker is doing, for the eyes of the watcher.
struct Shared {
  std::atomic<std::int64_t> cases;
  std::atomic<std::int64_t> case_started_ns;  // of the worker's processor time
  std::atomic<std::int64_t> slowest_ns;
  std::atomic<std::uint32_t> size;
  std::atomic<std::size_t> kind;
  char text[kTextMax];
};

struct Options {
  double seconds = 20;
  std::uint64_t seed = 1;
  std::string save = "fuzz-recipe.case";
  std::vector<std::string> files;
};

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void run_case(const std::string& text) {
  // The first byte chooses the language; Jsonnet costs a process, so it is rare.
  const unsigned char first = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
  const bool json = text.size() % 16 == 1;
  const bool jsonnet = text.size() % 256 == 2;
  const char* name = jsonnet ? "r.jsonnet" : json ? "r.json" : "r.yaml";
  const auto source = std::make_shared<const Source>(Source{name, text, Source::Kind::kFile});

  runner::recipe::ComposeOptions options;
  if (first % 8 == 3) {
    const std::string flag = text.substr(0, std::min<std::size_t>(text.find('\n'), 80));
    options.overrides.push_back({runner::recipe::Override::Kind::kSet, flag});
  }
  runner::core::Diagnostics diagnostics;
  const auto composed = runner::recipe::compose_text(source, options, diagnostics);
  if (composed) {
    auto recipe = runner::registry::validate_recipe(composed->root, runner::registry::Registry::builtin(), diagnostics);
    runner::resolve::settle(recipe, diagnostics);
    runner::core::to_yaml(recipe);
    runner::core::to_json(recipe);
  } else if (!diagnostics.has_errors()) {
    std::abort();  // no result and no error
  }
  diagnostics.sort();
  runner::core::render(diagnostics);
}

void watched_case(Shared& shared, const std::string& text, std::size_t kind) {
  const std::size_t size = std::min(text.size(), kTextMax);
  std::memcpy(shared.text, text.data(), size);
  shared.size = static_cast<std::uint32_t>(size);
  shared.kind = kind;
  const std::int64_t started = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  shared.case_started_ns = started;
  kReaders[kind].read(text);
  const std::int64_t took = now_ns(CLOCK_PROCESS_CPUTIME_ID) - started;
  if (took > shared.slowest_ns) shared.slowest_ns = took;
  ++shared.cases;
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const char* pattern :
       {"recipes/**/*.{yaml,jsonnet,json}", "tests/golden/bad/**/*.{yaml,jsonnet,json}", "tests/cli/**/*.cli"}) {
    for (const std::string& path : runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/" + pattern)) {
      auto text = runner::core::read_file(path, kTextMax / 4);
      if (text && !text.value().empty()) texts.push_back(std::move(text).value());
    }
  }
  texts.push_back(
      "model: {type: mlp, hidden: [8]}\ndata:\n  train: {type: synthetic, task: spirals, num_samples: 10}\n"
      "loss: cross_entropy\noptimizer: {type: adamw, lr: 1e-3}\ntraining: {max_steps: 5, micro_batch_size: 2}\n");
  return texts;
}

/// A file of llama.cpp with a tensor and a tokenizer of a few tokens.
std::string gguf_file() {
  namespace gguf = runner::gguf;
  gguf::Values values;
  values.add("general.architecture", "llama");
  for (const char* key :
       {"embedding_length", "block_count", "attention.head_count", "feed_forward_length", "context_length"}) {
    values.add_count(std::string("llama.") + key, 2);
  }
  values.add_float("llama.attention.layer_norm_rms_epsilon", 1e-5);
  values.add("tokenizer.ggml.model", "llama");
  values.add("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "a", "b", "ab", "<0x0A>"});
  values.add("tokenizer.ggml.scores", std::vector<float>{0, -1, -2, -3, 0});
  values.add("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 1, 1, 1, 6});
  values.add("tokenizer.ggml.add_bos_token", true);
  const auto zeros = [](std::int64_t, std::int64_t count, float* to) { std::fill(to, to + count * 32, 0.0F); };
  const std::string path =
      (std::filesystem::temp_directory_path() / ("roux-fuzz-" + std::to_string(::getpid()))).string();
  gguf::write_file(runner::artifact::system_io(), path, values,
                   {{"token_embd.weight", gguf::TensorType::kQ8_0, {5, 32}, zeros},
                    {"output_norm.weight", gguf::TensorType::kF32, {32}, zeros}});
  std::string bytes = runner::core::read_file(path, kTextMax).value();
  std::filesystem::remove(path);
  return bytes;
}

std::vector<std::string> tensor_corpus() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},"c":{"dtype":"U8","shape":[0],"data_offsets":[22,22]}})";
  std::vector<std::string> files = {
      static_cast<char>(header.size()) + std::string(7, '\0') + header + std::string(22, 'x'), gguf_file()};
  for (const std::string& path :
       runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/tests/runner/artifact/foreign/files/*.{pt,bin}")) {
    files.push_back(runner::core::read_file(path, kTextMax / 4).value());
  }
  for (const char* type : {"nf4", "int8"}) files.push_back(tests::packed_file(type));
  return files;
}

std::vector<std::string> tokenizer_corpus() {
  std::vector<std::string> files;
  for (const std::string& path :
       runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/tests/components/tokenizer/files/*.{json,model,txt}")) {
    files.push_back(runner::core::read_file(path, kTextMax / 4).value());
  }
  return files;
}

std::vector<std::string> template_corpus() {
  std::vector<std::string> texts;
  const std::string recorded = std::string(ROUX_SOURCE_DIR) + "/tests/components/template/recorded/cases.json";
  const auto cases = runner::core::parse_json(runner::core::read_file(recorded, 1 << 20).value()).value();
  for (const auto& one : cases.find("cases")->items()) texts.push_back(one.find("template")->as_string());
  return texts;
}

std::vector<std::string> config_corpus() {
  std::vector<std::string> files = {
      R"({"model_type": "llama", "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true,
          "bnb_4bit_quant_type": "nf4", "llm_int8_threshold": 6.0, "llm_int8_skip_modules": ["lm_head"]}})"};
  for (const std::string& path :
       runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/tests/parity/models/*/config.json")) {
    files.push_back(runner::core::read_file(path, kTextMax / 4).value());
  }
  return files;
}

std::vector<std::string> generation_corpus() {
  return {R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [2, 5]})",
          R"({"max_new_tokens": 40, "min_p": 0.1, "repetition_penalty": 1.1, "stop_strings": ["a"], "num_beams": 4,
              "num_return_sequences": 2, "bad_words_ids": [[1]], "transformers_version": "4.40.0"})"};
}

std::vector<std::string> adapter_corpus() {
  std::vector<std::string> files;
  for (const std::string& path :
       runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/tests/parity/adapters/*/adapter_config.json")) {
    files.push_back(runner::core::read_file(path, kTextMax / 4).value());
  }
  return files;
}

std::vector<std::string> index_corpus() {
  std::vector<std::string> files = {R"({"metadata": {}, "weight_map": {"w": "one.bin", "v": "two.safetensors"}})"};
  for (const std::string& path :
       runner::core::glob(std::string(ROUX_SOURCE_DIR) + "/tests/parity/models/*/*.index.json")) {
    files.push_back(runner::core::read_file(path, kTextMax / 4).value());
  }
  return files;
}

std::vector<std::string> answer_corpus() {
  std::vector<std::string> files = index_corpus();
  files.push_back(
      R"({"id": "ada/tiny", "sha": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "siblings": [{"rfilename": "config.json"},
          {"rfilename": "model.safetensors", "lfs": {"size": 3}}, {"rfilename": "data/a.jsonl"}], "tags": []})");
  return files;
}

/// By the ending of a file's name.
std::size_t kind_of(const std::string& path) {
  for (std::size_t kind = std::size(kReaders) - 1; kind > 0; --kind) {
    if (path.ends_with(kReaders[kind].ending)) return kind;
  }
  return kRecipe;
}

[[noreturn]] void work(Shared& shared, const Options& options) {
  if (!options.files.empty()) {
    for (const std::string& path : options.files) {
      watched_case(shared, runner::core::read_file(path, kTextMax).value(), kind_of(path));
    }
    _exit(0);
  }
  tests::Mutator mutator(corpus(), options.seed);
  const std::int64_t end = now_ns(CLOCK_MONOTONIC) + static_cast<std::int64_t>(options.seconds * 1e9);
  tests::TensorFiles files(tensor_corpus(), options.seed);
  tests::TensorFiles sets(tests::data_corpus(), options.seed);
  tests::TokenizerFiles tokenizers(tokenizer_corpus(), options.seed);
  tests::TemplateTexts templates(template_corpus(), options.seed);
  tests::JsonFiles configs(config_corpus(), options.seed), indexes(index_corpus(), options.seed),
      generations(generation_corpus(), options.seed), adapters(adapter_corpus(), options.seed);
  tests::AnswerFiles answers(tests::JsonFiles(answer_corpus(), options.seed), options.seed);
  while (now_ns(CLOCK_MONOTONIC) < end) {
    watched_case(shared, mutator.next(), kRecipe);
    for (int i = 0; i < kFilesBetween; ++i) {
      watched_case(shared, files.next(), kTensors);
      watched_case(shared, configs.next(), kConfig);
      watched_case(shared, indexes.next(), kIndex);
      watched_case(shared, adapters.next(), kAdapter);
      watched_case(shared, answers.next(), kAnswer);
    }
    for (int i = 0; i < kGenerationsBetween; ++i) {
      watched_case(shared, generations.next(), kGeneration);
      watched_case(shared, sets.next(), kData);
    }
    for (int i = 0; i < kTokenizersBetween; ++i) watched_case(shared, tokenizers.next(), kTokenizer);
    for (int i = 0; i < kTemplatesBetween; ++i) watched_case(shared, templates.next(), kTemplate);
  }
  tests::remove_generation_folder();
  tests::remove_data_folder();
  _exit(0);
}

int failed(const Shared& shared, const Options& options, const std::string& what) {
  const std::string text(shared.text, shared.size);
  const std::string save = options.save + kReaders[shared.kind].ending;
  runner::core::write_file_atomic(save, text).value();
  std::fprintf(stderr, "fuzz_recipe: case %lld of seed %llu: %s; saved as %s\n",
               static_cast<long long>(shared.cases.load()), static_cast<unsigned long long>(options.seed), what.c_str(),
               save.c_str());
  return 1;
}

int watch(pid_t worker, const Shared& shared, const Options& options) {
  clockid_t worker_clock{};
  ::clock_getcpuclockid(worker, &worker_clock);
  while (true) {
    int status = 0;
    if (::waitpid(worker, &status, WNOHANG) == worker) {
      if (WIFSIGNALED(status)) return failed(shared, options, "killed by signal " + std::to_string(WTERMSIG(status)));
      if (WEXITSTATUS(status) != 0) return failed(shared, options, "left with " + std::to_string(WEXITSTATUS(status)));
      std::printf("seed %llu: %lld cases, the slowest took %.0f ms\n", static_cast<unsigned long long>(options.seed),
                  static_cast<long long>(shared.cases.load()), static_cast<double>(shared.slowest_ns.load()) / 1e6);
      return shared.slowest_ns > kCaseSecondsMax * 1'000'000'000LL ? failed(shared, options, "a case was too slow") : 0;
    }
    const std::int64_t used = now_ns(worker_clock) - shared.case_started_ns;
    if (shared.case_started_ns > 0 && used > kCaseSecondsMax * 1'000'000'000LL) {
      ::kill(worker, SIGKILL);
      ::waitpid(worker, &status, 0);
      return failed(shared, options, "more than " + std::to_string(kCaseSecondsMax) + " s");
    }
    ::usleep(20'000);
  }
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool takes_value = word == "--seconds" || word == "--seed" || word == "--save";
    if (takes_value && i + 1 == count) {
      std::fprintf(stderr, "error: %s wants a value\n", word.c_str());
      std::exit(2);
    }
    if (word == "--seconds") {
      options.seconds = std::atof(words[++i]);
    } else if (word == "--seed") {
      options.seed = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--save") {
      options.save = words[++i];
    } else {
      options.files.push_back(word);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared{};
  const pid_t worker = ::fork();
  if (worker == 0) work(shared, options);
  return watch(worker, shared, options);
}
