#include <ATen/Parallel.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::NamedTensor;
using components::NamedTensors;
using components::optimizer::make_param_groups;
using components::optimizer::Optimizer;
using components::optimizer::ParamGroup;

namespace {

/// As a small gpt names them: two matrices, a norm, biases.
NamedTensors small_model() {
  NamedTensors all;
  const auto add = [&all](const char* name, at::IntArrayRef shape) {
    all.push_back({name, at::ones(shape).set_requires_grad(true)});
  };
  add("wte.weight", {4, 2});
  add("h.0.ln_1.weight", {2});
  add("h.0.ln_1.bias", {2});
  add("h.0.attn_qkv.weight", {6, 2});
  add("h.0.attn_qkv.bias", {6});
  return all;
}

std::string text(const std::vector<ParamGroup>& groups) {
  std::string all;
  for (const ParamGroup& group : groups) {
    all += "[" + group.name + "]";
    if (group.lr) all += " lr " + std::to_string(*group.lr).substr(0, 4);
    if (group.weight_decay) all += " decay " + std::to_string(*group.weight_decay).substr(0, 3);
    for (const NamedTensor& parameter : group.parameters) all += " " + parameter.name;
    all += "\n";
  }
  return all;
}

/// Keeps what an optimizer saves and gives it back.
class Memory final : public runner::core::StateWriter, public runner::core::StateReader {
 public:
  void value(std::string_view name, runner::core::Node node) override { values_[std::string(name)] = std::move(node); }
  void tensor(std::string_view name, const at::Tensor& tensor) override {
    tensors_[std::string(name)] = tensor.clone();
  }
  const runner::core::Node& value(std::string_view name) const override { return values_.at(std::string(name)); }
  bool has(std::string_view name) const override {
    return tensors_.contains(std::string(name)) || values_.contains(std::string(name));
  }
  at::Tensor tensor(std::string_view name) const override { return tensors_.at(std::string(name)).clone(); }
  void replace(const std::string& name, at::Tensor tensor) { tensors_[name] = std::move(tensor); }
  std::size_t tensor_count() const { return tensors_.size(); }

 private:
  std::map<std::string, runner::core::Node> values_;
  std::map<std::string, at::Tensor> tensors_;
};

std::shared_ptr<Optimizer> make(const std::string& recipe, const NamedTensors& parameters) {
  const auto node = tests::block("optimizer", recipe);
  runner::core::Diagnostics diagnostics;
  auto groups = make_param_groups(node, parameters, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return components::optimizer::build(node, {std::move(groups)});
}

void step(Optimizer& optimizer, const NamedTensors& parameters, double gradient, std::size_t without = 99) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor& grad = parameters[i].tensor.mutable_grad();
    grad.reset();
    if (i != without) grad = at::full(parameters[i].tensor.sizes(), gradient * static_cast<double>(i + 1));
  }
  optimizer.step();
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].tensor.equal(b[i].tensor)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("patterns cut parameters into groups", "[optimizer][groups]") {
  struct Case {
    const char* name;
    const char* recipe;
    const char* groups;
  };
  static constexpr Case cases[] = {
      {"no rule", "{type: adamw}",
       "[default] wte.weight h.0.ln_1.weight h.0.ln_1.bias h.0.attn_qkv.weight h.0.attn_qkv.bias\n"},
      {"1d", "{type: adamw, no_decay: 1d}",
       "[default] wte.weight h.0.attn_qkv.weight\n"
       "[no_decay] decay 0.0 h.0.ln_1.weight h.0.ln_1.bias h.0.attn_qkv.bias\n"},
      {"bias", "{type: adamw, no_decay: [bias]}",
       "[default] wte.weight h.0.ln_1.weight h.0.attn_qkv.weight\n"
       "[no_decay] decay 0.0 h.0.ln_1.bias h.0.attn_qkv.bias\n"},
      {"norm", "{type: adamw, no_decay: [norm]}",
       "[default] wte.weight h.0.attn_qkv.weight h.0.attn_qkv.bias\n"
       "[no_decay] decay 0.0 h.0.ln_1.weight h.0.ln_1.bias\n"},
      {"a pattern", "{type: adamw, no_decay: [wte.*]}",
       "[default] h.0.ln_1.weight h.0.ln_1.bias h.0.attn_qkv.weight h.0.attn_qkv.bias\n"
       "[no_decay] decay 0.0 wte.weight\n"},
      {"the first match wins",
       "{type: adamw, param_groups: [{pattern: 'h.*.bias', lr: 0.5}, {pattern: ['h.*'], weight_decay: 0.3}]}",
       "[default] wte.weight\n"
       "[h.*.bias] lr 0.50 h.0.ln_1.bias h.0.attn_qkv.bias\n"
       "[h.*] decay 0.3 h.0.ln_1.weight h.0.attn_qkv.weight\n"},
      {"no_decay parts a group, unless it has a decay of its own",
       "{type: adamw, no_decay: 1d, param_groups: [{pattern: 'h.0.attn*', lr: 0.5}, {pattern: '*ln_1*', weight_decay: "
       "0.3}]}",
       "[default] wte.weight\n"
       "[h.0.attn*] lr 0.50 h.0.attn_qkv.weight\n"
       "[*ln_1*] decay 0.3 h.0.ln_1.weight h.0.ln_1.bias\n"
       "[h.0.attn*, no_decay] lr 0.50 decay 0.0 h.0.attn_qkv.bias\n"},
  };
  const NamedTensors parameters = small_model();
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto node = tests::block("optimizer", c.recipe);
      runner::core::Diagnostics diagnostics;
      CHECK(text(make_param_groups(node, parameters, diagnostics)) == c.groups);
      CHECK_FALSE(diagnostics.has_errors());
    }
  }
}

TEST_CASE("a pattern that matches nothing is reported with the closest name", "[optimizer][groups]") {
  struct Case {
    const char* recipe;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"{type: adamw, no_decay: [wte.wieght]}",
       "optimizer.yaml:1:26: error: no parameter is called \"wte.wieght\"\n"
       "  hint: did you mean \"wte.weight\"? `*` matches any text\n"},
      {"{type: adamw, param_groups: [{pattern: 'layer4.*', lr: 0.1}]}",
       "optimizer.yaml:1:40: error: no parameter is called \"layer4.*\"\n"
       "  hint: the parameters are called wte.weight, h.0.ln_1.weight, h.0.ln_1.bias and 2 more; `*` matches any "
       "text\n"},
      {"{type: adamw, param_groups: [{pattern: 'wte.*', momentum: 0.1}]}",
       "optimizer.yaml:1:59: error: optimizer adamw has no momentum of a group\n"
       "  hint: sgd and rmsprop have one\n"},
      {"{type: sgd, param_groups: [{pattern: wte.weight, betas: [0.8, 0.9]}]}",
       "optimizer.yaml:1:57: error: optimizer sgd has no betas of a group\n"
       "  hint: adam, adamw and adamw_8bit have them\n"},
  };
  for (const Case& c : cases) {
    const auto node = tests::block("optimizer", c.recipe);
    runner::core::Diagnostics diagnostics;
    make_param_groups(node, small_model(), diagnostics);
    CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) == c.message);
  }
}

TEST_CASE("rates are the group's times the schedule's factor", "[optimizer]") {
  const NamedTensors parameters = small_model();
  const auto optimizer = make("{type: sgd, lr: 0.1, param_groups: [{pattern: 'wte.*', lr: 0.5}]}", parameters);
  CHECK(optimizer->lr(0) == 0.1);
  CHECK(optimizer->lr(1) == 0.5);
  optimizer->set_lr_factor(0.5);
  CHECK(optimizer->lr(0) == 0.05);
  CHECK(optimizer->lr(1) == 0.25);
  step(*optimizer, parameters, 1.0);
  CHECK(tests::to_numbers(parameters[0].tensor)[0] == Approx(1.0 - 0.25));        // gradient 1
  CHECK(tests::to_numbers(parameters[1].tensor)[0] == Approx(1.0 - 0.05 * 2.0));  // gradient 2
}

TEST_CASE("a saved optimizer resumes bit-identically", "[optimizer][state]") {
  for (const char* recipe : {"{type: adamw, lr: 0.1, no_decay: 1d}",
                             "{type: adam, lr: 0.1, amsgrad: true, weight_decay: 0.1}",
                             "{type: sgd, lr: 0.1, momentum: 0.9}",
                             "{type: sgd, lr: 0.1}",
                             "{type: adagrad, initial_accumulator_value: 0.1}",
                             "{type: rmsprop}",
                             "{type: rmsprop, momentum: 0.9, centered: true}",
                             "{type: adadelta}",
                             "{type: adamax}",
                             "{type: nadam, weight_decay: 0.1, decoupled_weight_decay: true}",
                             "{type: radam}",
                             "{type: rprop}",
                             "{type: asgd, t0: 2}",
                             "{type: lion, weight_decay: 0.1}",
                             "{type: lamb}",
                             "{type: adafactor}",
                             "{type: lomo, weight_decay: 0.1}",
                             "{type: adalomo, weight_decay: 0.1}",
                             "{type: muon, adamw_params: ['wte.*']}",
                             "{type: sgd_schedule_free, lr: 0.1, warmup_steps: 3, r: 1}",
                             "{type: adamw_schedule_free, lr: 0.1, weight_decay: 0.1}",
                             "{type: sgd, lr: 0.1, param_groups: [{pattern: 'wte.*', momentum: 0.9}]}"}) {
    DYNAMIC_SECTION(recipe) {
      const NamedTensors straight = small_model(), resumed = small_model();
      const auto a = make(recipe, straight), before = make(recipe, resumed);
      // A parameter without a gradient stays and gets no state until it has one.
      for (Optimizer* optimizer : {a.get(), before.get()}) {
        const NamedTensors& parameters = optimizer == a.get() ? straight : resumed;
        step(*optimizer, parameters, 0.5, /*without=*/2);
        CHECK(tests::to_numbers(parameters[2].tensor) == std::vector<double>{1.0, 1.0});
        step(*optimizer, parameters, -0.25);
      }
      Memory memory;
      before->save_state(memory);
      const auto after = make(recipe, resumed);
      after->load_state(memory);
      for (const double gradient : {1.0, -0.5, 0.125}) {
        step(*a, straight, gradient);
        step(*after, resumed, gradient);
      }
      CHECK(same(straight, resumed));
    }
  }
}

TEST_CASE("state of another shape is refused by name", "[optimizer][state]") {
  const NamedTensors parameters = small_model();
  const auto optimizer = make("{type: adamw}", parameters);
  step(*optimizer, parameters, 1.0);
  Memory memory;
  optimizer->save_state(memory);
  memory.replace("exp_avg.wte.weight", at::zeros({5, 2}));
  CHECK_THROWS_WITH(optimizer->load_state(memory),
                    "optimizer state exp_avg.wte.weight is Float [5, 2], but the parameter needs Float [4, 2]");
}

TEST_CASE("LAMB follows its paper", "[optimizer]") {
  const at::Tensor start = at::arange(1, 7, at::kDouble).reshape({3, 2}) / 4.0;
  const NamedTensors parameters{{"w", start.to(at::kFloat).set_requires_grad(true)}};
  const auto optimizer =
      make("{type: lamb, lr: 0.1, betas: [0.8, 0.9], eps: 1e-6, weight_decay: 0.05, max_trust_ratio: 2.0}", parameters);
  at::Tensor w = start.clone(), m = at::zeros_like(w), v = at::zeros_like(w);
  for (int t = 1; t <= 5; ++t) {
    const at::Tensor g = at::sin(w * t);
    parameters[0].tensor.mutable_grad() = at::sin(parameters[0].tensor.detach().to(at::kDouble) * t).to(at::kFloat);
    optimizer->step();
    m = 0.8 * m + 0.2 * g;
    v = 0.9 * v + 0.1 * g * g;
    const at::Tensor r = m / (1 - std::pow(0.8, t)) / (at::sqrt(v / (1 - std::pow(0.9, t))) + 1e-6) + 0.05 * w;
    w = w - 0.1 * std::min(w.norm().item<double>(), 2.0) / r.norm().item<double>() * r;
  }
  CHECK(at::allclose(parameters[0].tensor.detach().to(at::kDouble), w, 1e-5, 1e-6));
}

TEST_CASE("a step is the same on any number of threads", "[optimizer]") {
  for (const char* recipe : {"{type: lamb}", "{type: rmsprop, momentum: 0.9}", "{type: nadam}", "{type: lion}",
                             "{type: adamw_schedule_free}"}) {
    DYNAMIC_SECTION(recipe) {
      std::vector<at::Tensor> ends;
      const int before = at::get_num_threads();
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const NamedTensors parameters{{"w", at::linspace(-1, 1, 300'001, at::kFloat).set_requires_grad(true)}};
        const auto optimizer = make(recipe, parameters);
        for (int t = 1; t <= 3; ++t) {
          parameters[0].tensor.mutable_grad() = at::cos(parameters[0].tensor.detach() * t);
          optimizer->step();
        }
        ends.push_back(parameters[0].tensor.detach());
      }
      at::set_num_threads(before);
      CHECK(ends[0].equal(ends[1]));
      CHECK(ends[0].equal(ends[2]));
    }
  }
}

TEST_CASE("Muon leaves all but matrices, and named parameters, to AdamW", "[optimizer]") {
  const NamedTensors by_muon = small_model(), by_adamw = small_model();
  const auto muon = make("{type: muon, lr: 0.5, adamw_lr: 0.1, weight_decay: 0.0, adamw_params: ['wte.*']}", by_muon);
  const auto adamw = make("{type: adamw, lr: 0.1, betas: [0.9, 0.95], weight_decay: 0.0}", by_adamw);
  for (int t = 0; t < 3; ++t) {
    step(*muon, by_muon, 0.5);
    step(*adamw, by_adamw, 0.5);
  }
  for (std::size_t i = 0; i < by_muon.size(); ++i) {
    const bool muons_own = by_muon[i].name == "h.0.attn_qkv.weight";
    INFO(by_muon[i].name);
    CHECK(by_muon[i].tensor.equal(by_adamw[i].tensor) != muons_own);
  }
}

TEST_CASE("Muon moves each matrix of a stack by itself", "[optimizer]") {
  at::manual_seed(7);
  const at::Tensor first = at::randn({4, 3}), second = at::randn({4, 3}) * 20;
  const NamedTensors stack{{"experts", at::stack({first, second}).set_requires_grad(true)}},
      alone{{"a", first.clone().set_requires_grad(true)}, {"b", second.clone().set_requires_grad(true)}};
  const char* const text = "{type: muon, lr: 0.5, weight_decay: 0.1}";
  const auto of_stack = make(text, stack), of_both = make(text, alone);
  for (int t = 0; t < 3; ++t) {
    const at::Tensor one = at::randn({4, 3}), other = at::randn({4, 3}) * 100;
    stack[0].tensor.mutable_grad() = at::stack({one, other});
    alone[0].tensor.mutable_grad() = one;
    alone[1].tensor.mutable_grad() = other;
    of_stack->step();
    of_both->step();
  }
  CHECK(stack[0].tensor[0].equal(alone[0].tensor));
  CHECK(stack[0].tensor[1].equal(alone[1].tensor));
}

TEST_CASE("betas and eps of a group are its own", "[optimizer][groups]") {
  // torch.optim.AdamW(lr=0.1, weight_decay=0) in groups {betas=(0.5, 0.9), eps=0.1} and {}; three steps of sum_k (k+1)
  // * w_k^2 from (1, -1); torch 2.11.
  const NamedTensors parameters{{"a", at::full({1}, 1.0).set_requires_grad(true)},
                                {"b", at::full({1}, -1.0).set_requires_grad(true)}};
  const auto optimizer = make(
      "{type: adamw, lr: 0.1, weight_decay: 0, param_groups: [{pattern: a, betas: [0.5, 0.9], eps: 0.1}]}", parameters);
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].tensor.mutable_grad() = 2.0 * static_cast<double>(i + 1) * parameters[i].tensor.detach();
    }
    optimizer->step();
  }
  CHECK(parameters[0].tensor.item<double>() == Approx(0.720357478).epsilon(1e-6));
  CHECK(parameters[1].tensor.item<double>() == Approx(-0.701586306).epsilon(1e-6));
}

TEST_CASE("Adam with decoupled decay is AdamW", "[optimizer]") {
  const auto moved = [](const std::string& recipe) {
    const NamedTensors parameters{{"w", at::full({3}, 1.0).set_requires_grad(true)}};
    const auto optimizer = make(recipe, parameters);
    for (int i = 0; i < 3; ++i) step(*optimizer, parameters, 0.5);
    return parameters.front().tensor.detach();
  };
  const at::Tensor adamw = moved("{type: adamw, lr: 0.1, weight_decay: 0.2}");
  CHECK(moved("{type: adam, lr: 0.1, weight_decay: 0.2, decoupled_weight_decay: true}").equal(adamw));
  CHECK_FALSE(moved("{type: adam, lr: 0.1, weight_decay: 0.2}").equal(adamw));
}

TEST_CASE("swapping in the evaluation weights changes no bit of training", "[optimizer][schedule_free]") {
  for (const char* recipe : {"{type: sgd_schedule_free, lr: 0.1}", "{type: adamw_schedule_free, lr: 0.1}"}) {
    DYNAMIC_SECTION(recipe) {
      const NamedTensors plain = small_model(), looked_at = small_model();
      const auto a = make(recipe, plain), b = make(recipe, looked_at);
      for (const double gradient : {1.0, -0.5, 0.125}) {
        step(*a, plain, gradient);
        step(*b, looked_at, gradient);
        b->use_eval_weights(true);
        b->use_eval_weights(true);
        CHECK(same(plain, looked_at) == (gradient == 1.0));  // after one step the average is that step
        b->use_eval_weights(false);
        CHECK(same(plain, looked_at));
      }
    }
  }
}

TEST_CASE("a state saved while evaluation weights are in place holds the trained ones", "[optimizer][schedule_free]") {
  constexpr const char* kRecipe = "{type: adamw_schedule_free, lr: 0.1}";
  const NamedTensors trained = small_model();
  const auto before = make(kRecipe, trained);
  for (const double gradient : {1.0, -0.5}) step(*before, trained, gradient);
  NamedTensors resumed = small_model();
  Memory memory;
  before->use_eval_weights(true);
  for (std::size_t i = 0; i < trained.size(); ++i) resumed[i].tensor.detach().copy_(trained[i].tensor.detach());
  before->save_state(memory);
  before->use_eval_weights(false);
  const auto after = make(kRecipe, resumed);
  after->load_state(memory);
  CHECK_FALSE(same(trained, resumed));
  after->use_eval_weights(false);
  CHECK(same(trained, resumed));
  for (const auto& [optimizer, parameters] : {std::pair(before, trained), std::pair(after, resumed)}) {
    step(*optimizer, parameters, 0.25);
  }
  CHECK(same(trained, resumed));
}

TEST_CASE("a schedule's momentum takes the place of the recipe's until it has none", "[optimizer]") {
  struct Case {
    const char* own;
    const char* scheduled;
  };
  static constexpr Case cases[] = {
      {"{type: sgd, momentum: 0.9}", "{type: sgd, momentum: 0.5}"},
      {"{type: rmsprop, momentum: 0.9}", "{type: rmsprop, momentum: 0.5}"},
      {"{type: adam, betas: [0.9, 0.99]}", "{type: adam, betas: [0.5, 0.99]}"},
      {"{type: adamw, betas: [0.9, 0.99]}", "{type: adamw, betas: [0.5, 0.99]}"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.own) {
      const NamedTensors a = small_model(), b = small_model();
      const auto own = make(c.own, a), scheduled = make(c.scheduled, b);
      CHECK(own->has_momentum());
      own->set_momentum(0.5);
      for (const double gradient : {1.0, -0.25}) {
        step(*own, a, gradient);
        step(*scheduled, b, gradient);
      }
      CHECK(same(a, b));
      own->set_momentum({});
      step(*own, a, 1.0);
      step(*scheduled, b, 1.0);
      CHECK_FALSE(same(a, b));
    }
  }
  CHECK_FALSE(make("sgd", small_model())->has_momentum());
  CHECK_FALSE(make("lion", small_model())->has_momentum());
}
