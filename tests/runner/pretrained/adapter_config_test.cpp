#include "runner/pretrained/adapter_config.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "tests/support/cost.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using tests::TempDir;

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// The messages for a configuration of this text, without places; "" when it is taken.
std::string answer(const TempDir& dir, const std::string& text) {
  write(dir / kAdapterConfigFile, text);
  std::string messages;
  tests::check_cost_of_refusal([&] {
    core::Diagnostics diagnostics;
    const auto config = read_adapter_config(dir.path(), diagnostics);
    CHECK(config.has_value() != diagnostics.has_errors());
    messages.clear();
    for (const core::Diagnostic& told : diagnostics.all()) {
      messages += (messages.empty() ? "" : "; ") + told.message;
      CHECK(told.location.text().find(kAdapterConfigFile) != std::string::npos);
    }
  });
  return messages;
}

std::string lora(const std::string& fields) { return R"({"peft_type": "LORA", )" + fields + "}"; }

/// A safetensors file of float32 zeros: names and shapes as JSON.
std::string tensors(const std::string& header, std::size_t bytes) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(bytes, '\0');
}

std::string opened(const TempDir& dir, const std::string& header, std::size_t bytes) {
  write(dir / kAdapterConfigFile, lora(R"("r": 2, "target_modules": ["q"])"));
  write(dir / kAdapterFile, tensors(header, bytes));
  std::string message;
  tests::check_cost_of_refusal([&] {
    const auto adapter = open_adapter(dir.path());
    message = adapter ? "" : adapter.failure().message;
  });
  const std::size_t at = message.find(": ");
  return at == std::string::npos ? message : message.substr(at + 2);
}

}  // namespace

TEST_CASE("a field of an adapter's configuration is read, without effect, or refused", "[pretrained][adapter]") {
  struct Case {
    const char* name;
    std::string text, message;
  };
  const Case cases[] = {
      {"taken", lora(R"("r": 4, "lora_alpha": 16, "use_dora": false, "rank_pattern": {}, "_note": [1])"), ""},
      {"no object", "[]", "the configuration of an adapter is an object, and this is []"},
      {"no method", "{}", "the configuration has no peft_type"},
      {"another method", R"({"peft_type": "IA3", "r": "x"})", R"(peft_type is "IA3", which roux does not compute)"},
      {"rank", lora(R"("r": 0)"), "r is 0, but has to be between 1 and 65536"},
      {"huge rank", lora(R"("r": 9223372036854775807)"), "r is 9223372036854775807, but has to be between 1 and 65536"},
      {"type of a rank", lora(R"("r": "8")"), R"(r is "8", but has to be between 1 and 65536)"},
      {"alpha", lora(R"("lora_alpha": 1e300)"), "lora_alpha is 1e+300, but has to be a number from 0 to 1e30"},
      {"dropout", lora(R"("lora_dropout": 1)"), "lora_dropout is 1, but has to be a number from 0 to below 1"},
      {"bias", lora(R"("bias": "some")"), R"(bias is "some", but has to be none, all or lora_only)"},
      {"names", lora(R"("target_modules": [1])"), "target_modules is [1], but has to be a text or a list of texts"},
      {"DoRA", lora(R"("use_dora": 1)"), "use_dora is 1, but has to be true or false"},
      {"ranks", lora(R"("rank_pattern": {"q": 4})"),
       R"(rank_pattern is {"q": 4}, and roux computes adapters with {} only)"},
      {"saved modules", lora(R"("modules_to_save": "lm_head")"),
       "modules_to_save is \"lm_head\", but has to be a list of texts"},
      {"a base that is changed", lora(R"("init_lora_weights": "pissa")"),
       R"(init_lora_weights is "pissa", but has to be true, false or gaussian)"},
      {"a task", lora(R"("task_type": "QUESTION")"),
       R"(task_type is "QUESTION", but has to be one of CAUSAL_LM, SEQ_2_SEQ_LM, SEQ_CLS, TOKEN_CLS, QUESTION_ANS, FEATURE_EXTRACTION)"},
      {"unknown", lora(R"("use_wings": true)"),
       R"("use_wings" is not a field of LoraConfig in PEFT 0.21: what it does to the adapter is unknown)"},
  };
  const TempDir dir;
  for (const Case& one : cases) {
    INFO(one.name);
    CHECK(answer(dir, one.text) == one.message);
  }
  CHECK(answer(dir, lora("\"r\": " + std::string(100'000, '['))) != "");
  CHECK(answer(dir, lora("\"r\": 1" + std::string(400, '0'))) != "");
}

TEST_CASE("all recorded adapters are read, and written as they were", "[pretrained][adapter]") {
  for (const auto& entry : fs::directory_iterator(tests::source_dir() + "/tests/parity/adapters")) {
    const std::string folder = entry.path().string();
    INFO(folder);
    const auto adapter = open_adapter(folder);
    REQUIRE(adapter);
    for (const auto& pair : adapter.value().file.pairs()) {
      CHECK(adapter_name(pair.module, AdapterName::Part::kA) == pair.a->name);
      CHECK(adapter_name(pair.module, AdapterName::Part::kB) == pair.b->name);
      if (pair.magnitude != nullptr)
        CHECK(adapter_name(pair.module, AdapterName::Part::kMagnitude) == pair.magnitude->name);
    }
    const auto written =
        core::parse_json(core::read_file((entry.path() / kAdapterConfigFile).string(), 1 << 20).value());
    const auto again = core::parse_json(adapter_config_text(adapter.value().config));
    for (const core::Node::Entry& field : written.value().entries()) {
      INFO(field.key);
      REQUIRE(again.value().find(field.key) != nullptr);
      // The first goes by the model, and the other says which release of PEFT wrote the folder.
      if (field.key == "fan_in_fan_out" || field.key == "peft_version") continue;
      if (field.key == "target_parameters" && field.value.is_sequence())
        continue;  // of a mixture PEFT writes none as []
      CHECK(core::to_json(*again.value().find(field.key)) == core::to_json(field.value));
    }
    CHECK(again.value().entries().size() == written.value().entries().size());
  }
}

TEST_CASE("a file that holds less than its configuration says is refused", "[pretrained][adapter]") {
  const std::vector<std::string> model = {"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj",
                                          "model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.o_proj"};
  const std::string q0 =
      R"({"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": {"dtype": "F32", "shape": [2, 4], )"
      R"("data_offsets": [0, 32]}, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": )"
      R"({"dtype": "F32", "shape": [4, 2], "data_offsets": [32, 64]}})";
  struct Case {
    const char* name;
    std::string fields, lacking;
  };
  const Case cases[] = {
      {"one layer, and no more is asked for", R"("target_modules": ["q_proj"], "layers_to_transform": [0])", ""},
      {"a number for a list", R"("target_modules": ["q_proj"], "layers_to_transform": 0)", ""},
      {"a whole name", R"("target_modules": ["layers.0.self_attn.q_proj"])", ""},
      {"a name that the model does not have", R"("target_modules": ["query_key_value", "0.self_attn.q_proj"])", ""},
      {"an expression", R"("target_modules": ".*\\.0\\.self_attn\\.q_proj")", ""},
      {"an expression that only Python has", R"("target_modules": "(?!x).*o_proj")", ""},
      {"all but excluded ones", R"("target_modules": ["q_proj", "o_proj"], "exclude_modules": ".*(o_proj|1.*).*")", ""},
      {"another layer", R"("target_modules": ["q_proj"])", "model.layers.1.self_attn.q_proj"},
      {"another name", R"("target_modules": ["q_proj", "o_proj"], "layers_to_transform": [0])",
       "model.layers.0.self_attn.o_proj"},
      {"all linear layers", R"("target_modules": "all-linear", "layers_to_transform": [0])",
       "model.layers.0.self_attn.o_proj"},
      {"an expression of more", R"("target_modules": ".*[qo]_proj", "layers_to_transform": [0])",
       "model.layers.0.self_attn.o_proj"},
      {"all that there is", R"("target_modules": ["q_proj", "o_proj"])",
       "model.layers.0.self_attn.o_proj, model.layers.1.self_attn.q_proj, model.layers.1.self_attn.o_proj"},
  };
  const TempDir dir;
  const std::string file = dir / kAdapterFile;
  write(file, tensors(q0, 64));
  for (const Case& one : cases) {
    INFO(one.name);
    write(dir / kAdapterConfigFile, lora(R"("r": 2, )" + one.fields));
    const auto adapter = open_adapter(dir.path());
    REQUIRE(adapter);
    const auto whole = check_holds_all(adapter.value(), model);
    CHECK((whole ? "" : whole.failure().message) ==
          (one.lacking.empty()
               ? ""
               : file + " has no lora_A and lora_B of " + one.lacking + ", which adapter_config.json adapts"));
  }
  write(dir / kAdapterConfigFile,
        lora(R"("r": 2, "target_modules": ["0.self_attn.q_proj"], "modules_to_save": ["lm_head"])"));
  const auto whole = check_holds_all(open_adapter(dir.path()).value(), model);
  REQUIRE_FALSE(whole);
  CHECK(whole.failure().message == file + " has no \"lm_head\", which modules_to_save in adapter_config.json names");
}

TEST_CASE("a damaged or hostile file of an adapter is refused with its tensor", "[pretrained][adapter]") {
  const TempDir dir;
  const std::string a =
      R"("base_model.model.q.lora_A.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})";
  const std::string b =
      R"("base_model.model.q.lora_B.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [24, 32]})";
  CHECK(opened(dir, "{" + a + ", " + b + "}", 32) == "");
  CHECK(opened(dir, "{" + a + "}", 24) == R"("q" has a lora_A without its lora_B)");
  CHECK(opened(dir, "{}", 0) == "no lora_A and lora_B in the file");
  const std::string other = R"("lm_head.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [24, 32]})";
  CHECK(opened(dir, "{" + a + ", " + other + "}", 32) ==
        R"("lm_head.weight" is not a tensor of LoRA on linear layers)");
  const std::string wide =
      R"("base_model.model.q.lora_B.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [24, 32]})";
  CHECK(opened(dir, "{" + a + ", " + wide + "}", 32) ==
        R"("base_model.model.q.lora_B.weight" is [2, 1], which does not fit r 2)");
  const std::string bias = R"("base_model.model.q.bias": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]})";
  CHECK(opened(dir, "{" + a + ", " + bias + "}", 32) ==
        R"("base_model.model.q.bias" is a bias, and bias is none in adapter_config.json)");
  const std::string magnitude =
      R"("base_model.model.q.lora_magnitude_vector": {"dtype": "F32", "shape": [1], "data_offsets": [32, 36]})";
  CHECK(opened(dir, "{" + a + ", " + b + ", " + magnitude + "}", 36) ==
        R"("base_model.model.q.lora_magnitude_vector" is of DoRA, and use_dora is false in adapter_config.json)");
  const std::string over =
      R"("base_model.model.q.lora_B.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [16, 24]})";
  CHECK(opened(dir, "{" + a + ", " + over + "}", 24) != "");
  CHECK(opened(dir, std::string(5000, '['), 0) != "");
}

TEST_CASE("an adapter's tensors carry its name unless it is the default one", "[pretrained][adapter]") {
  using Part = AdapterTensor::Part;
  const AdapterTensor cases[] = {{"h.0.attn_qkv.q_proj", Part::kA, "default"},
                                 {"h.0.attn_qkv.q_proj", Part::kB, "style"},
                                 {"h.12.mlp_fc", Part::kMagnitude, "default"},
                                 {"h.12.mlp_fc", Part::kMagnitude, "weight"}};
  for (const AdapterTensor& one : cases) {
    const auto found = adapter_tensor(name_of_tensor(one));
    INFO(name_of_tensor(one));
    REQUIRE(found);
    CHECK(found->layer == one.layer);
    CHECK(found->part == one.part);
    CHECK(found->adapter == one.adapter);
  }
  CHECK(name_of_tensor(cases[0]) == "h.0.attn_qkv.q_proj.lora_A.weight");
  CHECK(name_of_tensor(cases[1]) == "h.0.attn_qkv.q_proj.lora_B.style.weight");
  CHECK(name_of_tensor(cases[3]) == "h.12.mlp_fc.lora_magnitude_vector.weight");
  for (const char* name : {"h.0.ln_1.weight", "h.0.mlp_fc.lora_A", "h.0.mlp_fc.lora_A.bias", "q.lora_C.weight",
                           "q.lora_A..weight", "q.lora_magnitude_vectors"}) {
    INFO(name);
    CHECK_FALSE(adapter_tensor(name));
  }
}

TEST_CASE("target_modules are the shortest names of the adapted layers alone", "[pretrained][adapter]") {
  const ModelType& gpt2 = *find_model_type("gpt2");
  const ModelType& llama = *find_model_type("llama");
  const core::Node config = core::parse_json(R"({"n_layer": 2, "num_hidden_layers": 2})").value();
  const auto shown = [&config](const ModelType& type, const std::vector<std::string>& modules) {
    return core::to_json(target_modules(type, config, modules), -1);
  };
  CHECK(shown(gpt2, {"transformer.h.0.mlp.c_proj", "transformer.h.1.mlp.c_proj"}) == R"(["mlp.c_proj"])");
  CHECK(shown(llama, {"model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"}) == R"(["up_proj"])");
  CHECK(shown(llama, {"model.layers.1.mlp.up_proj"}) == R"(["model.layers.1.mlp.up_proj"])");
  CHECK(module_of_layer(llama, "h.3.attn_qkv.v_proj") == "model.layers.3.self_attn.v_proj");
  CHECK(module_of_layer(llama, "h.3.attn_proj") == "model.layers.3.self_attn.o_proj");
  CHECK(module_of_layer(gpt2, "h.0.attn_qkv") == "transformer.h.0.attn.c_attn");
  CHECK(module_of_layer(gpt2, "h.0.wings").empty());
}

}  // namespace runner::pretrained
