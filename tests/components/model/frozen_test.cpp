// What `training.freeze` and `train_only` name, and what they say of names that are wrong.

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/core/diagnostics.h"
#include "runner/recipe/read.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::model::Model;

constexpr const char* kLlama = "{type: llama, n_layer: 1, n_head: 2, n_embd: 8, mlp_width: 8}";
constexpr const char* kGpt = "{type: gpt, n_layer: 1, n_head: 2, n_embd: 8}";

runner::core::Node section(const char* text) {
  const auto source = std::make_shared<runner::core::Source>(
      runner::core::Source{"training.yaml", text, runner::core::Source::Kind::kFile});
  runner::core::Diagnostics diagnostics;
  return runner::recipe::read_yaml(source, {}, diagnostics).value();
}

/// The names of what is trained, or the errors.
std::string trained(const char* model, const char* training) {
  const std::shared_ptr<Model> built = tests::make_model(model, tests::text_data(16, 4));
  runner::core::Diagnostics diagnostics;
  components::model::freeze_parameters(*built, section(training), tests::block("model", model), diagnostics);
  std::string text;
  for (const auto& diagnostic : diagnostics.all()) text += diagnostic.message + "; " + diagnostic.hint + "\n";
  if (!text.empty()) return text;
  for (const auto& parameter : built->trained_parameters()) text += (text.empty() ? "" : " ") + parameter.name;
  return text;
}

struct Case {
  const char *model, *training, *expected;
};

}  // namespace

TEST_CASE("patterns freeze parameters by their own names, those of ties and those of Transformers", "[model][frozen]") {
  const std::string all =
      "wte.weight h.0.ln_1.weight h.0.attn_qkv.weight h.0.attn_proj.weight h.0.ln_2.weight h.0.mlp_fc.weight "
      "h.0.mlp_proj.weight ln_f.weight head.weight";
  CHECK(trained(kLlama, "{freeze: [], train_only: []}") == all);
  const Case cases[] = {
      {kLlama, "{freeze: ['h.*', wte.weight]}", "ln_f.weight head.weight"},
      {kLlama, "{freeze: ['model.layers.0.*', model.embed_tokens.weight]}", "ln_f.weight head.weight"},
      {kLlama, "{freeze: ['layers.0.*', embed_tokens.weight]}", "ln_f.weight head.weight"},
      {kLlama, "{train_only: ['*layernorm*', lm_head.weight]}", "h.0.ln_1.weight h.0.ln_2.weight head.weight"},
      {kLlama, "{train_only: ['h.*'], freeze: ['*.ln_?.*', '*.ln_1.*', '*.ln_2.*', '*mlp*']}",
       "training.freeze names no parameter: \"*.ln_?.*\"; the parameters are called wte.weight, h.0.ln_1.weight, "
       "h.0.attn_qkv.weight and 6 more; `*` matches any text\n"},
      {kLlama, "{train_only: ['h.*'], freeze: ['*.ln_*', '*mlp*']}", "h.0.attn_qkv.weight h.0.attn_proj.weight"},
      {kLlama, "{train_only: ['*.q_proj.*', '*.k_proj.*', '*.v_proj.weight']}", "h.0.attn_qkv.weight"},
      {kLlama, "{train_only: ['*_proj.weight']}",
       "h.0.attn_qkv.weight h.0.attn_proj.weight h.0.mlp_fc.weight h.0.mlp_proj.weight"},
      {kLlama, "{train_only: ['*.q_proj.*', '*.v_proj.*']}",
       "training.train_only names model.layers.0.self_attn.q_proj.weight, which is joined with others in "
       "h.0.attn_qkv.weight; name model.layers.0.self_attn.k_proj.weight as well, or h.0.attn_qkv.weight\n"
       "training.train_only names model.layers.0.self_attn.v_proj.weight, which is joined with others in "
       "h.0.attn_qkv.weight; name model.layers.0.self_attn.k_proj.weight as well, or h.0.attn_qkv.weight\n"},
      {kGpt, "{train_only: [head.weight]}", "wte.weight"},
      {kGpt, "{train_only: [lm_head.weight]}", "wte.weight"},
      {kGpt, "{train_only: ['transformer.h.0.attn.c_attn.*', h.0.mlp.c_proj.bias]}",
       "h.0.attn_qkv.weight h.0.attn_qkv.bias h.0.mlp_proj.bias"},
      {kGpt, "{freeze: [h.0, wte.wieght, blocks.7]}",
       "training.freeze names no parameter: \"h.0\"; did you mean \"h.0.*\"?\n"
       "training.freeze names no parameter: \"wte.wieght\"; did you mean \"wte.weight\"? `*` matches any text\n"
       "training.freeze names no parameter: \"blocks.7\"; the parameters are called wte.weight, wpe.weight, "
       "h.0.ln_1.weight and 13 more; `*` matches any text\n"},
      {kGpt, "{freeze: ['*']}", "training.freeze leaves no parameter to train; name fewer of them\n"},
      {kGpt, "{train_only: ['h.*'], freeze: ['h.0.*']}",
       "training.freeze leaves no parameter to train; train_only names only what freeze names, too\n"},
  };
  for (const Case& c : cases) {
    INFO(c.model << " " << c.training);
    CHECK(trained(c.model, c.training) == c.expected);
  }
}

TEST_CASE("what no trained parameter asks for is not counted as computed", "[model][frozen]") {
  const auto flops = [](const char* training) {
    const std::shared_ptr<Model> model = tests::make_model(kLlama, tests::text_data(16, 4));
    runner::core::Diagnostics diagnostics;
    components::model::freeze_parameters(*model, section(training), tests::block("model", kLlama), diagnostics);
    return model->training_flops(4) / model->forward_flops(4);
  };
  CHECK(flops("{}") == 3.0);
  CHECK(flops("{train_only: [wte.weight]}") == Approx(2.0));  // its gradient goes through all products
  const std::shared_ptr<Model> model = tests::make_model(kLlama, tests::text_data(16, 4));
  const double head = model->blocks().back()->forward_flops(4) / model->forward_flops(4);
  CHECK(flops("{train_only: [head.weight]}") == Approx(1 + 2 * head).epsilon(0.1));  // with a norm in its block
}
