#include "runner/artifact/tensor_compare.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runner/artifact/io/element.h"
#include "runner/artifact/safetensors_layout.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;
using Kind = TensorDifference::Kind;

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

std::string file_of(const std::vector<Tensor>& given) {
  std::vector<TensorBytes> tensors;
  for (const Tensor& tensor : given) {
    tensors.push_back({tensor.name, "F32", tensor.shape, tensor.values.data(),
                       static_cast<std::int64_t>(tensor.values.size() * sizeof(float))});
  }
  sort_for_safetensors(tensors);
  std::string text = safetensors_head(tensors, {});
  for (const TensorBytes& tensor : tensors) {
    text.append(static_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes));
  }
  return text;
}

constexpr const char* kTrainer =
    R"({"counters": {"step": 5, "progress": {"seconds": 1.5}}, "state": {"callbacks.0": {"best": 2.0}}})";

void write_checkpoint(const std::string& folder, const std::vector<Tensor>& model, const std::vector<Tensor>& optimizer,
                      const std::string& trainer = kTrainer) {
  write(folder + "/model.safetensors", file_of(model));
  write(folder + "/optimizer.safetensors", file_of(optimizer));
  write(folder + "/trainer.json", trainer);
}

const std::vector<Tensor> kModel = {{"b", {3}, {1, 2, 3}}, {"w", {2, 3}, {1, 2, 3, 4, 5, 6}}};
const std::vector<Tensor> kMoments = {{"exp_avg.b", {3}, {0, 0, 0}}};

TEST_CASE("two checkpoints with the same bits are the same, whoever wrote them and when", "[artifact][compare]") {
  const TempDir dir;
  write_checkpoint(dir / "a", kModel, kMoments);
  write_checkpoint(dir / "b", kModel, kMoments, R"({"counters": {"step": 5, "progress": {"seconds": 9.25}},
                                                    "state": {"callbacks.0": {"best": 2.0}}})");
  write(dir / "a/manifest.json", "one");
  write(dir / "b/manifest.json", "other");
  write(dir / "b/pinned", "");
  const Comparison result = compare_checkpoints(dir / "a", dir / "b").value();
  CHECK(result.same());
  CHECK(result.tensors_compared == 3);
  CHECK(result.elements_compared == 12);
  REQUIRE(result.values.size() == 1);  // told, but two runs never take equally long
  CHECK(result.values[0].wall_clock);
  CHECK(first_difference(dir / "a", dir / "b").value() == std::nullopt);
}

TEST_CASE("a tensor that differs is measured", "[artifact][compare]") {
  const TempDir dir;
  write_checkpoint(dir / "a", kModel, kMoments);
  write_checkpoint(dir / "b", {kModel[0], {"w", {2, 3}, {1, 2, 3, 4, 5.5, 8}}}, kMoments);
  const Comparison result = compare_checkpoints(dir / "a", dir / "b").value();
  CHECK_FALSE(result.same());
  REQUIRE(result.tensors.size() == 1);
  const TensorDifference& w = result.tensors[0];
  CHECK(w.kind == Kind::kValues);
  CHECK(w.elements == 6);
  CHECK(w.differing == 2);
  CHECK(w.max_abs == 2.0);
  CHECK(w.max_rel == 0.25);
  CHECK(w.first == std::vector<std::int64_t>{1, 1});
  CHECK(to_text(w) == "w[1, 1] of model.safetensors is 5 in a and 5.5 in b; 2 of 6 elements differ, by 2 at most");
  CHECK(first_difference(dir / "a", dir / "b").value() == to_text(w));
}

TEST_CASE("each kind of difference is named", "[artifact][compare]") {
  struct Case {
    const char* name;
    std::vector<Tensor> model, optimizer;
    const char* trainer;
    const char* first;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {
      {"missing", {kModel[1]}, kMoments, kTrainer, "b of model.safetensors is only in a"},
      {"extra", {kModel[0], kModel[1], {"x", {1}, {0}}}, kMoments, kTrainer, "x of model.safetensors is only in b"},
      {"another shape",
       {kModel[0], {"w", {3, 2}, kModel[1].values}},
       kMoments,
       kTrainer,
       "w of model.safetensors is [2, 3] in a and [3, 2] in b"},
      {"a sign of zero",
       kModel,
       {{"exp_avg.b", {3}, {0, -0.0f, 0}}},
       kTrainer,
       "exp_avg.b[1] of optimizer.safetensors is 0 in a and -0 in b; 1 of 3 elements differ, by 0 at most"},
      {"a NaN",
       {{"b", {3}, {1, nan, 3}}, kModel[1]},
       kMoments,
       kTrainer,
       "b[1] of model.safetensors is 2 in a and nan in b; 1 of 3 elements differ, by 0 at most"},
      {"a counter", kModel, kMoments,
       R"({"counters": {"step": 6, "progress": {"seconds": 1.5}}, "state": {"callbacks.0": {"best": 2.0}}})",
       "counters.step of trainer.json is 5 in a and 6 in b"},
      {"state that one lacks", kModel, kMoments,
       R"({"counters": {"step": 5, "progress": {"seconds": 1.5}}, "state": {}})",
       "state.callbacks.0 of trainer.json is {\"best\": 2.0} in a and absent in b"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TempDir dir;
      write_checkpoint(dir / "a", kModel, kMoments);
      write_checkpoint(dir / "b", c.model, c.optimizer, c.trainer);
      CHECK(first_difference(dir / "a", dir / "b").value().value_or("the same") == c.first);
    }
  }
}

TEST_CASE("shards count as the file they were cut from", "[artifact][compare]") {
  const TempDir dir;
  write(dir / "a/model.safetensors", file_of(kModel));
  write(dir / "b/model-00001-of-00002.safetensors", file_of({kModel[0]}));
  write(dir / "b/model-00002-of-00002.safetensors", file_of({kModel[1]}));
  const std::string index = dir / "b/model.safetensors.index.json";
  write(index, R"({"metadata": {"total_size": 36}, "weight_map": {"b": "model-00001-of-00002.safetensors",
                                                                    "w": "model-00002-of-00002.safetensors"}})");
  CHECK(compare_checkpoints(dir / "a", dir / "b").value().same());
  CHECK(compare_checkpoints(dir / "a/model.safetensors", index).value().tensors_compared == 2);

  write(index, R"({"weight_map": {"b": "model-00001-of-00002.safetensors", "w": "model-00001-of-00002.safetensors"}})");
  CHECK(compare_checkpoints(dir / "a", dir / "b").failure().message ==
        dir / "b/model-00001-of-00002.safetensors lacks tensor \"w\", which " + index + " lists");
  // A NUL ends a name for the system: `open` would take the model beside it.
  for (const std::string shard :
       {"../a/model.safetensors", "model-00001-of-00002.safetensors\\u0000.safetensors", "model-00001-of-00002"}) {
    INFO(shard);
    write(index, R"({"weight_map": {"b": ")" + shard + R"("}})");
    CHECK(compare_checkpoints(dir / "a", index).failure().message ==
          index + " is not an index of shards: tensor \"b\" is listed in \"" + shard +
              "\", which is not a file of tensors next to it");
  }
}

TEST_CASE("numbers of other types are compared by value", "[artifact][compare]") {
  // bf16 of 1, 2.5 and 3.140625; f32 of 1, 2.5 and 3.14159.
  const std::vector<std::uint16_t> narrow = {0x3F80, 0x4020, 0x4049};
  const TempDir dir;
  const std::vector<TensorBytes> tensors = {{"t", "BF16", {3}, narrow.data(), 6}};
  write(dir / "b.safetensors",
        safetensors_head(tensors, {}) + std::string(reinterpret_cast<const char*>(narrow.data()), 6));
  write(dir / "a.safetensors", file_of({{"t", {3}, {1.0f, 2.5f, 3.14159f}}}));
  const Comparison result = compare_checkpoints(dir / "a.safetensors", dir / "b.safetensors").value();
  REQUIRE(result.tensors.size() == 1);
  CHECK(result.tensors[0].kind == Kind::kDtype);
  CHECK(result.tensors[0].differing == 1);
  CHECK(result.tensors[0].max_abs == Approx(0.000965).epsilon(1e-3));
}

TEST_CASE("elements of every type come out as the numbers they are", "[artifact][compare]") {
  struct Case {
    const char* dtype;
    std::uint64_t bits;
    double value;
  };
  // By hand from IEEE 754 and from OCP's 8-bit specification.
  static constexpr Case cases[] = {{"BF16", 0xC040, -3.0},
                                   {"F16", 0x3C00, 1.0},
                                   {"F16", 0x0001, 5.960464477539063e-08},
                                   {"F16", 0x7BFF, 65504.0},
                                   {"F8_E4M3", 0x7E, 448.0},
                                   {"F8_E4M3", 0x01, 0.001953125},
                                   {"F8_E4M3", 0xB8, -1.0},
                                   {"F8_E5M2", 0x7B, 57344.0},
                                   {"F8_E5M2", 0x3C, 1.0},
                                   {"I8", 0xFF, -1.0},
                                   {"U8", 0xFF, 255.0},
                                   {"I16", 0xFFFE, -2.0},
                                   {"BOOL", 1, 1.0},
                                   {"I32", 0xFFFFFFFF, -1.0},
                                   {"U32", 0xFFFFFFFF, 4294967295.0},
                                   {"F64", 0x3FE0000000000000, 0.5}};
  for (const Case& c : cases) {
    CAPTURE(c.dtype, c.bits);
    double value = 0;
    REQUIRE(visit_element(c.dtype, [&](auto element) {
      using Element = decltype(element);
      value = static_cast<double>(Element::value(bits_at<Element>(&c.bits, 0)));
    }));
    CHECK(value == c.value);
  }
  CHECK(std::isnan(F8E4M3Element::value(0x7F)));
}

TEST_CASE("a path without tensors is refused with a hint", "[artifact][compare]") {
  const TempDir dir;
  write_checkpoint(dir / "a", kModel, kMoments);
  std::filesystem::create_directory(dir / "empty");
  const auto result = compare_checkpoints(dir / "a", dir / "empty");
  REQUIRE_FALSE(result.ok());
  CHECK(result.failure().message == "there is no checkpoint in " + (dir / "empty") + ": it has no safetensors file");
  CHECK_FALSE(compare_checkpoints(dir / "a", dir / "gone").ok());
  CHECK_FALSE(compare_checkpoints(dir / "a", dir / "a/trainer.json").ok());
}

}  // namespace
}  // namespace runner::artifact
