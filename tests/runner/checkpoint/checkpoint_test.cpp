#include "runner/checkpoint/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include "components/tensor/tensors.h"
#include "runner/checkpoint/tensor_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/stub_model_torch.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using components::NamedTensor;
using components::NamedTensors;
using components::model::Model;
using core::Node;
using core::RunError;
using tests::TempDir;

/// Two layers; the head shares the embedding's storage. Every call draws other weights.
std::unique_ptr<Model> small_model() {
  const at::Tensor embedding = at::randn({10, 4}).requires_grad_();
  return tests::stub_model({{"wte.weight", embedding}, {"h.weight", at::randn({4, 4}).requires_grad_()}},
                           {{"h.mean", at::randn({4})}}, {{"head.weight", "wte.weight"}});
}

struct Part final : core::Stateful {
  NamedTensors tensors;
  std::vector<std::pair<std::string, Node>> values;
  void save_state(core::StateWriter& writer) const override {
    for (const auto& [name, value] : values) writer.value(name, value);
    for (const NamedTensor& named : tensors) writer.tensor(named.name, named.tensor);
  }
  void load_state(const core::StateReader& reader) override {
    for (auto& [name, value] : values) value = reader.value(name);
    for (NamedTensor& named : tensors) named.tensor = reader.tensor(named.name);
  }
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

SaveOptions options_for(const TempDir& dir, std::int64_t step = 5) {
  SaveOptions options;
  options.checkpoints_dir = dir.path();
  options.fields.step = step;
  return options;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_CASE("everything that decides the next step is restored bitwise", "[checkpoint]") {
  const TempDir dir;
  at::manual_seed(3);
  const auto saved = small_model();
  const at::Tensor transposed = at::randn({3, 5}).t();
  Part optimizer;
  optimizer.tensors = {{"exp_avg.wte.weight", at::randn({10, 4})},
                       {"transposed", transposed},
                       {"every second", at::arange(10, at::kLong).slice(0, 0, 10, 2)},
                       {"scalar", at::scalar_tensor(3, at::kLong)},
                       {"empty", at::empty({0, 3})},
                       {"flags", at::ones({3}, at::kBool)},
                       {"half", at::randn({7}).to(at::kBFloat16)},
                       {"not finite", at::full({2}, std::nan(""))}};
  Part scheduler;
  const double values[] = {0.1, 1.0, -0.0, 1e-300, 5e-324, std::nan(""), -std::numeric_limits<double>::infinity()};
  Node list = Node::sequence();
  for (const double value : values) list.items().push_back(Node::floating(value));
  scheduler.values = {{"list", list}, {"step", Node::integer(7)}, {"text", Node::string("nan")}};
  TrainState state{saved.get(), {{"optimizer", &optimizer}, {"lr_scheduler", &scheduler}}, Node::mapping()};
  state.counters.set("samples", Node::integer(1LL << 60));
  const std::string path = save(state, options_for(dir));
  CHECK(path == dir / "step-000005");
  CHECK(artifact::verify_checkpoint(path).ok());
  const at::Tensor next_draw = at::randn({5});

  at::manual_seed(99);
  const auto loaded = small_model();
  Part other_optimizer, other_scheduler;
  for (const NamedTensor& named : optimizer.tensors) other_optimizer.tensors.push_back({named.name, at::Tensor()});
  for (const auto& [name, value] : scheduler.values) other_scheduler.values.emplace_back(name, Node());
  TrainState target{loaded.get(), {{"optimizer", &other_optimizer}, {"lr_scheduler", &other_scheduler}}, Node()};
  const Node counters = load(path, target);

  CHECK(same_bits(at::randn({5}), next_draw));
  CHECK(counters.find("samples")->as_integer() == 1LL << 60);
  for (std::size_t i = 0; i < saved->parameters().size(); ++i) {
    CHECK(same_bits(saved->parameters()[i].tensor, loaded->parameters()[i].tensor));
    CHECK(loaded->parameters()[i].tensor.requires_grad());
  }
  CHECK(same_bits(saved->buffers()[0].tensor, loaded->buffers()[0].tensor));
  for (std::size_t i = 0; i < optimizer.tensors.size(); ++i) {
    CAPTURE(optimizer.tensors[i].name);
    CHECK(same_bits(optimizer.tensors[i].tensor, other_optimizer.tensors[i].tensor));
  }
  CHECK(other_optimizer.tensors[1].tensor.strides() == transposed.strides());
  const Node& back = other_scheduler.values[0].second;
  REQUIRE(back.items().size() == std::size(values));
  for (std::size_t i = 0; i < std::size(values); ++i) {
    CAPTURE(values[i]);
    REQUIRE(back.items()[i].kind() == Node::Kind::kFloat);
    const double value = back.items()[i].as_double();
    CHECK((std::isnan(value) ? std::isnan(values[i]) : std::memcmp(&value, &values[i], sizeof value) == 0));
  }
  CHECK(other_scheduler.values[1].second.as_integer() == 7);
  CHECK(other_scheduler.values[2].second.as_string() == "nan");
}

TEST_CASE("a checkpoint has one file for each part that has tensors", "[checkpoint]") {
  const TempDir dir;
  const auto model = small_model();
  Part optimizer, callback, quiet;
  optimizer.tensors = {{"m", at::ones({2})}};
  callback.tensors = {{"best", at::ones({2})}};
  const std::string path =
      save({model.get(), {{"optimizer", &optimizer}, {"callbacks.0", &callback}, {"callbacks.1", &quiet}}, Node()},
           options_for(dir));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"callbacks.0.safetensors", "manifest.json", "model.safetensors",
                                          "optimizer.safetensors", "random_states_0.safetensors", "trainer.json"});
}

TEST_CASE("a tied parameter is saved once, and its other name is on record", "[checkpoint]") {
  const TempDir dir;
  const std::string path = save({small_model().get(), {}, Node::mapping()}, options_for(dir));
  const TensorSource file(path + "/model.safetensors");
  std::vector<std::string> names;
  for (const artifact::TensorBytes& tensor : file.tensors()) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"h.mean", "h.weight", "wte.weight"});
  CHECK(read(path + "/trainer.json").find("\"head.weight\": \"wte.weight\"") != std::string::npos);
}

TEST_CASE("all that does not fit a model is reported, and the model stays unchanged", "[checkpoint]") {
  const TempDir dir;
  const auto saved = tests::stub_model({{"a", at::ones({2, 3})},
                                        {"b", at::ones({4})},
                                        {"c", at::ones({1})},
                                        {"d", at::ones({1})},
                                        {"e", at::ones({1})}});
  const std::string path = save({saved.get(), {}, Node::mapping()}, options_for(dir));
  const at::Tensor a = at::zeros({2, 3}), e = at::zeros({1}, at::kHalf);
  const auto other =
      tests::stub_model({{"a", a}, {"b", at::zeros({5})}, {"e", e}, {"x", at::zeros({1})}, {"y", at::zeros({1})}});
  const std::string expected = path +
                               "/model.safetensors does not fit the model: it lacks x, y; the model has no c, d; "
                               "b is [4] there and [5] in the model";
  TrainState state{other.get(), {}, Node()};
  CHECK(error_of([&] { load(path, state); }) == expected + "; e is F32 there and F16 in the model");
  CHECK(error_of([&] { load_weights(path, *other); }) == expected);
  CHECK(a.sum().item<float>() == 0);
}

TEST_CASE("weights alone come from a folder or a file, from other types and other names of tied tensors",
          "[checkpoint]") {
  const TempDir dir;
  const auto saved =
      tests::stub_model({{"head.weight", at::ones({10, 4}).to(at::kBFloat16)}, {"h.weight", at::ones({4, 4})}},
                        {{"h.mean", at::ones({4})}});
  const std::string path = save({saved.get(), {}, Node::mapping()}, options_for(dir));
  for (const std::string& source : {path, path + "/model.safetensors"}) {
    const auto model = small_model();
    load_weights(source, *model);
    for (const NamedTensor& named : model->parameters()) CHECK(at::equal(named.tensor, at::ones_like(named.tensor)));
  }
}

TEST_CASE("what a checkpoint lacks for a part is named", "[checkpoint]") {
  const TempDir dir;
  const auto model = small_model();
  Part optimizer;
  optimizer.values = {{"step", Node::integer(1)}};
  const std::string path = save({model.get(), {{"optimizer", &optimizer}}, Node::mapping()}, options_for(dir));
  struct Case {
    const char* name;
    std::string part, value, tensor, message;
  };
  const Case cases[] = {
      {"value", "optimizer", "lr", "", path + ": the state of optimizer has no value lr"},
      {"tensor", "optimizer", "", "exp_avg", path + ": the state of optimizer has no tensor exp_avg"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      Part part;
      if (!c.value.empty()) part.values = {{c.value, Node()}};
      if (!c.tensor.empty()) part.tensors = {{c.tensor, at::Tensor()}};
      TrainState state{model.get(), {{c.part, &part}}, Node()};
      CHECK(error_of([&] { load(path, state); }) == c.message);
    }
  }
}

TEST_CASE("a part without a state in the checkpoint starts from scratch, except the optimizer", "[checkpoint]") {
  const TempDir dir;
  const auto model = small_model();
  Part optimizer, callback;
  const std::string path = save({model.get(), {{"optimizer", &optimizer}}, Node::mapping()}, options_for(dir));
  callback.values = {{"done", Node::integer(7)}};
  TrainState with_callback{model.get(), {{"callbacks.new", &callback}}, Node()};
  CHECK(error_of([&] { load(path, with_callback); }) == "");
  CHECK(callback.values.front().second.as_integer() == 7);
  optimizer.values = {{"step", Node::integer(1)}};
  TrainState with_optimizer{model.get(), {{"optimizer", &optimizer}}, Node()};
  CHECK(error_of([&] { load(path, with_optimizer); }) == path + " has no state of optimizer");
}

TEST_CASE("a newer or broken trainer.json is refused by name", "[checkpoint]") {
  const TempDir dir;
  const auto model = small_model();
  const std::string path = save({model.get(), {}, Node::mapping()}, options_for(dir));
  const std::string file = path + "/trainer.json";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"format_version": 2})", file + " has format version 2, this program reads up to 1"},
      {"{}", file + " has no format version"},
      {R"({"format_version": 1})", file + " has no section \"state\""},
      {"{", file + " cannot be read: it is not valid JSON from byte 2 on"},
  };
  for (const auto& [text, message] : cases) {
    std::ofstream(file, std::ios::trunc) << text;
    TrainState state{model.get(), {}, Node()};
    CHECK(error_of([&] { load(path, state); }) == message);
  }
}

TEST_CASE("the estimate covers what is written, and not much more", "[checkpoint]") {
  const TempDir dir;
  const auto model = tests::stub_model({{"w", at::randn({1000, 1000}).set_requires_grad(true)},
                                        {"b", at::randn({1000}).set_requires_grad(true)},
                                        {"frozen", at::randn({100, 1000})}});
  Part adam;
  for (const char* name : {"m.w", "v.w"}) adam.tensors.push_back({name, at::randn({1000, 1000})});
  for (const char* name : {"m.b", "v.b"}) adam.tensors.push_back({name, at::randn({1000})});
  const std::string path = save({model.get(), {{"optimizer", &adam}}, Node::mapping()}, options_for(dir));
  std::int64_t written = 0;
  for (const auto& entry : fs::directory_iterator(path)) written += static_cast<std::int64_t>(entry.file_size());
  const std::int64_t estimate = estimate_bytes(*model, [](const at::Tensor& parameter) {
    return SavedState{2 * static_cast<std::int64_t>(parameter.nbytes()), 2};
  });
  CHECK(estimate >= written);
  CHECK(static_cast<double>(estimate) < 1.01 * static_cast<double>(written));
}

TEST_CASE("a type without a word in safetensors is refused", "[checkpoint]") {
  TensorFile file("x.safetensors");
  CHECK(error_of([&] { file.add("z", at::zeros({1}, at::kComplexFloat)); }) ==
        "tensor z has the type ComplexFloat, which safetensors does not support");
}

}  // namespace
}  // namespace runner::checkpoint
