#include "runner/checkpoint/init_from.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "components/tensor/tensors.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/recipe/compose.h"
#include "runner/registry/validate.h"
#include "runner/resolve/recipe.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::checkpoint {
namespace {

using components::NamedTensor;
using components::NamedTensors;
using components::model::Model;
using core::Node;
using tests::TempDir;

const char* const kTied =
    "{type: gpt, n_layer: 1, n_head: 2, n_embd: 8, tie_embeddings: true, bias: false, positions: learned}";

std::shared_ptr<Model> gpt(std::int64_t vocabulary = 11, bool meta = false) {
  return tests::make_model(kTied, tests::text_data(vocabulary, 4), meta);
}

void write(const std::string& path, const NamedTensors& given) {
  std::vector<artifact::TensorBytes> tensors;
  std::deque<at::Tensor> kept;
  for (const NamedTensor& named : given) {
    const at::Tensor& tensor = kept.emplace_back(named.tensor.detach().contiguous());
    tensors.push_back({named.name, dtype_word(tensor), tensor.sizes().vec(), tensor.const_data_ptr(),
                       static_cast<std::int64_t>(tensor.nbytes())});
  }
  artifact::sort_for_safetensors(tensors);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << artifact::safetensors_head(tensors, {});
  for (const auto& tensor : tensors) file.write(static_cast<const char*>(tensor.data), tensor.bytes);
}

NamedTensors prefixed(NamedTensors tensors, const std::string& prefix) {
  for (NamedTensor& named : tensors) named.name = prefix + named.name;
  return tensors;
}

struct Answer {
  std::optional<InitWeights> weights;
  std::string messages;
};

/// What the recipe text `init_from: TEXT` asks of the model; paths are seen from the folder.
Answer plan(const TempDir& dir, const Model& model, const std::string& text) {
  core::Diagnostics diagnostics;
  auto source = std::make_shared<core::Source>(
      core::Source{"r.yaml", "model: {type: mlp}\ninit_from: " + text + "\n", core::Source::Kind::kFile});
  const auto composed = recipe::compose_text(source, {}, diagnostics);
  REQUIRE(composed.has_value());
  core::Diagnostics other;  // the rest of the recipe is not there
  const Node root = registry::validate_recipe(composed->root, registry::Registry::builtin(), other);
  Answer answer;
  const Node& written = *root.find("init_from");
  answer.weights =
      plan_init_from(sections::init_from::parse_config(written), written, root, model, dir / "runs", diagnostics);
  core::RenderOptions options;
  options.excerpts = false;
  answer.messages = core::render(diagnostics, options);
  for (std::size_t at; (at = answer.messages.find(dir.path())) != std::string::npos;) {
    answer.messages.replace(at, dir.path().size(), "DIR");
  }
  return answer;
}

bool same(const Model& a, const Model& b) {
  const NamedTensors of_a = a.parameters(), of_b = b.parameters();
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (!at::equal(of_a[i].tensor, of_b[i].tensor)) return false;
  }
  return of_a.size() == of_b.size();
}

TEST_CASE("weights come from a file, under other names, in another type, in shards", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto other = gpt();
  const auto model = gpt();
  REQUIRE_FALSE(same(*model, *other));
  SECTION("as they are called") {
    write(dir / "a.safetensors", other->parameters());
    const Answer answer = plan(dir, *model, dir / "a.safetensors");
    REQUIRE(answer.messages == "");
    load_init_weights(*answer.weights, *model);
    CHECK(same(*model, *other));
  }
  SECTION("below a prefix") {
    write(dir / "a.safetensors", prefixed(other->parameters(), "transformer."));
    const Answer answer = plan(dir, *model, "{path: " + (dir / "a.safetensors") + ", rename: {'^transformer\\.': ''}}");
    REQUIRE(answer.messages == "");
    load_init_weights(*answer.weights, *model);
    CHECK(same(*model, *other));
  }
  SECTION("inside wrappers of PyTorch") {
    struct Case {
      const char *prefix, *block, *told;
    };
    for (const Case& c : {
             Case{"_orig_mod.", "", "`_orig_mod.`"},
             {"module.", "", "`module.`"},
             {"module._orig_mod.", "", "`module._orig_mod.`"},
             {"model._orig_mod.", "", "`model._orig_mod.`"},
             {"", "_orig_mod.", "`_orig_mod.`"},
             {"module.", "_checkpoint_wrapped_module.", "`module.`, `_checkpoint_wrapped_module.`"},
         }) {
      INFO(c.prefix << " " << c.block);
      NamedTensors tensors = prefixed(other->parameters(), c.prefix);
      for (NamedTensor& named : tensors) {
        const std::size_t at = named.name.find("h.0.");
        if (at != std::string::npos) named.name.insert(at + 4, c.block);
      }
      write(dir / "a.safetensors", tensors);
      const Answer answer = plan(dir, *model, dir / "a.safetensors");
      REQUIRE(answer.messages == "");
      CHECK(answer.weights->text().ends_with("a.safetensors (without " + std::string(c.told) + " in its names)"));
      const auto fresh = gpt();
      load_init_weights(*answer.weights, *fresh);
      CHECK(same(*fresh, *other));
    }
  }
  SECTION("inside a wrapper, by names that rename maps") {
    write(dir / "a.safetensors", prefixed(other->parameters(), "_orig_mod."));
    const Answer answer = plan(dir, *model, "{path: " + (dir / "a.safetensors") + ", rename: {'^_orig_mod\\.': ''}}");
    REQUIRE(answer.messages == "");
    CHECK(answer.weights->wrappers.empty());
    load_init_weights(*answer.weights, *model);
    CHECK(same(*model, *other));
  }
  SECTION("the tied head beside the embedding") {
    NamedTensors tensors = other->parameters();
    tensors.push_back({"head.weight", tensors[0].tensor.clone()});
    REQUIRE(tensors[0].name == "wte.weight");
    write(dir / "a.safetensors", tensors);
    const Answer answer = plan(dir, *model, dir / "a.safetensors");
    REQUIRE(answer.messages == "");
    CHECK(answer.weights->filled == answer.weights->tensors);
    load_init_weights(*answer.weights, *model);
    CHECK(same(*model, *other));
  }
  SECTION("the tied head in the place of the embedding") {
    NamedTensors tensors = other->parameters();
    tensors[0].name = "head.weight";
    write(dir / "a.safetensors", tensors);
    load_init_weights(*plan(dir, *model, dir / "a.safetensors").weights, *model);
    CHECK(same(*model, *other));
  }
  SECTION("in half precision") {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kDouble}) {
      NamedTensors tensors = other->parameters();
      for (NamedTensor& named : tensors) named.tensor = named.tensor.to(type);
      write(dir / "a.safetensors", tensors);
      const Answer answer = plan(dir, *model, dir / "a.safetensors");
      REQUIRE(answer.messages == "");
      CHECK(answer.weights->converted.size() == 1);
      load_init_weights(*answer.weights, *model);
      const NamedTensors filled = model->parameters();
      for (std::size_t i = 0; i < filled.size(); ++i) {
        CHECK(at::equal(filled[i].tensor, tensors[i].tensor.to(at::kFloat)));
      }
    }
  }
  SECTION("in two shards") {
    const NamedTensors all = other->parameters();
    write(dir / "model-1.safetensors", {all.begin(), all.begin() + 2});
    write(dir / "model-2.safetensors", {all.begin() + 2, all.end()});
    std::string map;
    for (std::size_t i = 0; i < all.size(); ++i) {
      map += (i == 0 ? "\"" : ", \"") + all[i].name + "\": \"model-" + (i < 2 ? "1" : "2") + ".safetensors\"";
    }
    std::ofstream(dir / "model.safetensors.index.json") << "{\"weight_map\": {" << map << "}}";
    for (const std::string& path : {dir / "model.safetensors.index.json", dir.path()}) {
      const auto fresh = gpt();
      const Answer answer = plan(dir, *fresh, path);
      REQUIRE(answer.messages == "");
      load_init_weights(*answer.weights, *fresh);
      CHECK(same(*fresh, *other));
    }
  }
}

TEST_CASE("weights come from a file of torch.save", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto model = tests::make_model("{type: mlp, hidden: [4]}", tests::value_data(8, 1));
  std::filesystem::copy_file(tests::source_dir() + "/tests/runner/artifact/foreign/files/mlp.pt",
                             dir / "pytorch_model.bin");
  for (const std::string& path : {dir / "pytorch_model.bin", dir.path()}) {
    const Answer answer = plan(dir, *model, path);
    REQUIRE(answer.messages == "");
    CHECK(answer.weights->text() == "4 of 4 tensors (41 elements) from " + (dir / "pytorch_model.bin") +
                                        " (its `model_state_dict`), 1 BF16 to F32, 2 F64 to F32");
    CHECK(answer.weights->to_node().find("key")->as_string() == "model_state_dict");
    const at::NoGradGuard no_grad;
    for (const NamedTensor& parameter : model->parameters()) parameter.tensor.fill_(-1);
    load_init_weights(*answer.weights, *model);
    const NamedTensors filled = model->parameters();
    CHECK(at::equal(filled[0].tensor, at::arange(32, at::kFloat).reshape({8, 4}).t()));
    CHECK(at::equal(filled[1].tensor, at::arange(4, at::kFloat)));
    CHECK(at::equal(filled[2].tensor, at::arange(4, at::kFloat).reshape({1, 4})));
    CHECK(at::equal(filled[3].tensor, at::full({1}, 0.5)));
  }
}

TEST_CASE("all mismatches are reported at once, before anything is read", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto model = gpt(11, true);
  const auto other = gpt();
  const std::string file = dir / "a.safetensors";
  SECTION("a prefix that was forgotten") {
    write(file, prefixed(other->parameters(), "transformer."));
    const std::string messages = plan(dir, *model, file).messages;
    CHECK(
        messages.find("r.yaml:2:12: error: init_from: DIR/a.safetensors lacks 9 of the model's 9 tensors: wte.weight, "
                      "wpe.weight, ") == 0);
    CHECK(messages.find("hint: they are in the file below \"transformer.\": rename: {'^transformer\\.': ''}") !=
          std::string::npos);
    CHECK(messages.find("error: init_from: the model has no tensors named transformer.") != std::string::npos);
  }
  SECTION("a tensor too few, one too many, one of another shape and one of another kind") {
    NamedTensors tensors = other->parameters();
    tensors[0].tensor = at::zeros({12, 8});
    tensors[1].tensor = at::zeros({4, 8}, at::kLong);
    tensors[2].name = "h.0.ln1.weight";
    write(file, tensors);
    CHECK(plan(dir, *model, file).messages ==
          "r.yaml:2:12: error: init_from: of DIR/a.safetensors 2 tensors do not fit: wte.weight is [12, 8] there and "
          "[11, 8] in the model, wpe.weight is I64 there and F32 in the model\n"
          "  hint: give the model the same sizes, or keep their initial values with init_from.exclude\n"
          "r.yaml:2:12: error: init_from: DIR/a.safetensors lacks 1 of the model's 9 tensors: h.0.ln_1.weight\n"
          "  hint: is \"h.0.ln1.weight\" meant as h.0.ln_1.weight? use init_from.rename\n"
          "r.yaml:2:12: error: init_from: the model has no tensors named h.0.ln1.weight (1 of the 9 tensors in "
          "DIR/a.safetensors)\n"
          "  hint: init_from.rename maps them to the model's names\n");
  }
  SECTION("a pattern that names nothing") {
    write(file, other->parameters());
    CHECK(plan(dir, *model, "{path: " + file + ", exclude: wtf.weight}")
              .messages.find(
                  "error: init_from.exclude names no tensor: \"wtf.weight\"\n  hint: did you mean \"wte.weight\"?") !=
          std::string::npos);
  }
  SECTION("two names that become one") {
    write(file, other->parameters());
    CHECK(plan(dir, *model, "{path: " + file + ", rename: {'wpe': wte}}")
              .messages.find("init_from.rename makes wte.weight of both wpe.weight and wte.weight") !=
          std::string::npos);
  }
  SECTION("a name that would speak to the terminal") {
    write(file, {{"x\x1b[2J\n", at::zeros({2})}});
    const std::string messages = plan(dir, *model, file).messages;
    CHECK(messages.find("x\\x1b[2J\\x0a") != std::string::npos);
    CHECK(messages.find('\x1b') == std::string::npos);
  }
  SECTION("nothing in common") {
    write(file, {{"x", at::zeros({2})}});
    const Answer answer = plan(dir, *model, "{path: " + file + ", strict: false}");
    CHECK_FALSE(answer.weights);
    CHECK(answer.messages.find("error: init_from: DIR/a.safetensors has no tensor for the model") != std::string::npos);
  }
  SECTION("a file of torch.save") {
    std::ofstream(dir / "model.pt") << "PK\x03\x04 and so on";
    CHECK(
        plan(dir, *model, dir / "model.pt").messages ==
        "r.yaml:2:12: error: init_from: DIR/model.pt is not a PyTorch file: it has no zip directory, as if it were cut "
        "off\n");
  }
  SECTION("a path that is none") {
    CHECK(plan(dir, *model, dir / "gone").messages ==
          "r.yaml:2:12: error: init_from: file not found: DIR/gone\n"
          "  hint: give a checkpoint folder, or RUN:best, RUN:last, RUN:step-000500\n");
  }
}

TEST_CASE("a square weight of a transposed file is refused, strict or not", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto model =
      tests::make_model("{type: gpt, n_layer: 1, n_head: 2, n_embd: 8, positions: learned}", tests::text_data(11, 4));
  NamedTensors tensors = model->parameters();
  const std::string file = dir / "a.safetensors";
  const std::string some = "{path: " + file + ", strict: false, exclude: ['*.attn_qkv.*', '*.mlp_*', 'head.*']}";
  write(file, tensors);
  CHECK(plan(dir, *model, some).messages == "");
  // As Hugging Face's GPT-2 has it: the weight of a Conv1D layer is [in, out].
  for (NamedTensor& named : tensors) {
    if (named.name.starts_with("h.0.") && named.tensor.dim() == 2)
      named.tensor = named.tensor.detach().t().contiguous();
  }
  write(file, tensors);
  const std::string hint =
      "  hint: write the file with these weights transposed (weight.t().contiguous()), or keep their initial values "
      "with "
      "init_from.exclude\n";
  const std::string square =
      "r.yaml:2:12: error: init_from: DIR/a.safetensors holds transposed weights (h.0.attn_qkv.weight is [8, 24] "
      "beside "
      "a bias of [24]), and 1 weight matches only because it is square: h.0.attn_proj.weight\n" +
      hint;
  const std::string messages = plan(dir, *model, some).messages;
  CHECK(messages.substr(messages.find("error")) == square.substr(square.find("error")));
  const std::string all = plan(dir, *model, file).messages;
  CHECK(all.find("of DIR/a.safetensors 3 tensors do not fit: h.0.attn_qkv.weight is [8, 24] there and [24, 8] in the "
                 "model, ") != std::string::npos);
  CHECK(all.find(square.substr(square.find("error"))) != std::string::npos);
}

TEST_CASE("without strict, and with exclude, the rest stays as it was drawn", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto other = gpt();
  const auto model = gpt();
  const NamedTensors before = [&] {
    NamedTensors copies;
    for (const NamedTensor& named : model->parameters()) copies.push_back({named.name, named.tensor.detach().clone()});
    return copies;
  }();
  NamedTensors tensors = other->parameters();
  std::string options;
  std::size_t kept = 0;
  SECTION("missing and unexpected ones are told") {
    tensors[1].name = "elsewhere";
    options = ", strict: false";
    kept = 1;
  }
  SECTION("one is excluded, whatever its shape") {
    tensors[1].tensor = at::zeros({1});
    options = ", exclude: [wpe.*]";
    kept = 1;
  }
  write(dir / "a.safetensors", tensors);
  const Answer answer = plan(dir, *model, "{path: " + (dir / "a.safetensors") + options + "}");
  REQUIRE(answer.messages == "");
  CHECK(answer.weights->filled == 8);
  CHECK(answer.weights->text().find("8 of 9 tensors (") == 0);
  CHECK(answer.weights->text().find("1 keeps its initial value: wpe.weight") != std::string::npos);
  load_init_weights(*answer.weights, *model);
  const NamedTensors after = model->parameters();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CAPTURE(after[i].name);
    CHECK(at::equal(after[i].tensor, i == kept ? before[i].tensor : other->parameters()[i].tensor));
  }
}

TEST_CASE("tied tensors that differ in the source are refused", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto other = gpt();
  const auto model = gpt();
  NamedTensors tensors = other->parameters();
  tensors.push_back({"head.weight", at::zeros({11, 8})});
  write(dir / "a.safetensors", tensors);
  const Answer answer = plan(dir, *model, dir / "a.safetensors");
  REQUIRE(answer.weights);
  CHECK_THROWS_WITH(load_init_weights(*answer.weights, *model),
                    Catch::Contains("are one tensor in the model, but differ in"));
  const Answer without = plan(dir, *model, "{path: " + (dir / "a.safetensors") + ", exclude: head.weight}");
  REQUIRE(without.messages == "");
  load_init_weights(*without.weights, *model);
  CHECK(same(*model, *other));
}

TEST_CASE("a checkpoint of roux is compared with its manifest first", "[checkpoint][init_from]") {
  const TempDir dir;
  const auto other = gpt();
  const auto model = gpt();
  TrainState state;
  state.model = other.get();
  SaveOptions options;
  options.checkpoints_dir = dir / "checkpoints";
  std::filesystem::create_directory(options.checkpoints_dir);
  options.fields.step = 5;
  options.fields.run_id = "1a2b";
  const std::string folder = save(state, options);
  const Answer answer = plan(dir, *model, folder);
  REQUIRE(answer.messages == "");
  CHECK(answer.weights->to_node().find("step")->as_integer() == 5);
  CHECK(answer.weights->to_node().find("run_id")->as_string() == "1a2b");
  load_init_weights(*answer.weights, *model);
  CHECK(same(*model, *other));

  std::fstream file(folder + "/model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-1, std::ios::end);
  file.put('\x7f');
  file.close();
  CHECK_THROWS_WITH(load_init_weights(*answer.weights, *model),
                    Catch::Contains("does not match its checksum in the manifest"));
}

}  // namespace
}  // namespace runner::checkpoint
