#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "components/kernels/block_codes.h"
#include "components/quantization/blockwise.h"
#include "runner/artifact/io/element.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/core/error.h"
#include "runner/pretrained/packed/pack.h"
#include "runner/pretrained/packed/packed_reader.h"
#include "tests/support/cost.h"

namespace {

using namespace runner;

using artifact::TensorBytes;
using pretrained::Packed;
using pretrained::PackedReader;
using pretrained::PackedWeight;
using pretrained::PackForm;
using Kind = PackedWeight::Kind;

struct Tensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::vector<char> content;
};
using Tensors = std::vector<Tensor>;

/// Of a file, in memory.
class Held final : public artifact::TensorList {
 public:
  explicit Held(const Tensors& tensors) : held_(tensors) {
    for (const Tensor& tensor : held_) {
      add({tensor.name,
           tensor.dtype,
           tensor.shape,
           tensor.content.data(),
           static_cast<std::int64_t>(tensor.content.size()),
           {}});
    }
  }

 private:
  Tensors held_;
};

template <typename Numbers>
std::vector<char> bytes_of(const Numbers& numbers) {
  std::vector<char> bytes(numbers.size() * sizeof(numbers[0]));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<char> text(const std::string& text) { return {text.begin(), text.end()}; }

template <typename Numbers>
Tensor tensor(const std::string& name, const char* dtype, const Numbers& numbers) {
  return {name, dtype, {static_cast<std::int64_t>(numbers.size())}, bytes_of(numbers)};
}

constexpr const char* kName = "a.weight";
constexpr std::int64_t kOut = 6, kIn = 50;

std::vector<float> drawn(std::int64_t count) {
  std::mt19937 draw(3);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = normal(draw);
  return numbers;
}

/// As bitsandbytes writes it.
Tensors written(const PackForm& form) {
  const Packed packed = pretrained::pack(drawn(kOut * kIn), kIn, form);
  if (form.kind == Kind::kInt8) {
    return {{kName, "I8", {kOut, kIn}, bytes_of(packed.codes)},
            tensor("a.SCB", "F32", packed.scales),
            {"a.weight_format", "U8", {}, {'\0'}}};
  }
  const std::string word = form.kind == Kind::kNf4 ? "nf4" : "fp4";
  std::string state = R"({"quant_type": ")" + word + R"(", "blocksize": 64, "dtype": "float32", "shape": [6, 50])";
  if (form.double_quant) {
    state += R"(, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": )" +
             std::to_string(packed.nested_offset);
  }
  Tensors all = {{kName, "U8", {kOut * kIn / 2, 1}, bytes_of(packed.codes)},
                 tensor(kName + std::string(".quant_map"), "F32", components::quantization::table_of(form.kind).values),
                 tensor(kName + std::string(".quant_state.bitsandbytes__") + word, "U8", text(state + "}"))};
  if (form.double_quant) {
    all.push_back(tensor(kName + std::string(".absmax"), "U8", packed.nested_codes));
    all.push_back(tensor(kName + std::string(".nested_absmax"), "F32", packed.scales));
    all.push_back(tensor(kName + std::string(".nested_quant_map"), "F32", components::kernels::kSignedCodes.values));
  } else {
    all.push_back(tensor(kName + std::string(".absmax"), "F32", packed.scales));
  }
  return all;
}

std::string reason(const Tensors& tensors) {
  std::string found = "it was read";
  tests::check_cost_of_refusal([&] {
    try {
      PackedReader(std::make_unique<Held>(tensors), "f.safetensors");
    } catch (const core::RunError& error) {
      found = error.what();
      CHECK(!error.hint().empty());
      CHECK(error.exit_code() == core::kExitUsage);
    }
  });
  return found;
}

Tensor& find(Tensors& tensors, const std::string& end) {
  return *std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& one) { return one.name.ends_with(end); });
}

void remove(Tensors& tensors, const std::string& end) {
  std::erase_if(tensors, [&](const Tensor& one) { return one.name.ends_with(end); });
}

/// With another text of its quant_state.
void restate(Tensors& tensors, const std::string& from, const std::string& to) {
  Tensor& state = *std::find_if(tensors.begin(), tensors.end(),
                                [](const Tensor& one) { return one.name.find("quant_state") != std::string::npos; });
  std::string json(state.content.begin(), state.content.end());
  const std::size_t at = json.find(from);
  REQUIRE(at != std::string::npos);
  state = tensor(state.name, "U8", text(json.replace(at, from.size(), to)));
}

constexpr PackForm kForms[] = {{Kind::kNf4, false}, {Kind::kFp4, false}, {Kind::kNf4, true}, {Kind::kInt8, false}};

}  // namespace

TEST_CASE("a packed weight is one tensor with its sizes, and as near as its bits allow", "[pretrained][quantization]") {
  const std::vector<float> numbers = drawn(kOut * kIn);
  for (const PackForm& form : kForms) {
    INFO(pretrained::packed_word(form.kind));
    Tensors file = written(form);
    file.push_back(tensor("b.bias", "F32", std::vector<float>{1.0F}));
    const PackedReader reader(std::make_unique<Held>(file), "f.safetensors");
    REQUIRE(reader.tensors().size() == 2);
    const TensorBytes& whole = *reader.find(kName);
    CHECK(whole.dtype == pretrained::packed_word(form.kind));
    CHECK(whole.shape == std::vector<std::int64_t>{kOut, kIn});
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i + 1 < file.size(); ++i) bytes += static_cast<std::int64_t>(file[i].content.size());
    CHECK(whole.bytes == bytes);
    CHECK(reader.packed("b.bias") == nullptr);
    const PackedWeight& weight = *reader.packed(kName);
    std::vector<float> all(numbers.size()), some(2 * kIn);
    weight.read_rows(0, kOut, all.data());
    weight.read_rows(3, 2, some.data());
    CHECK(std::equal(some.begin(), some.end(), all.begin() + 3 * kIn));
    // Half the widest gap between two values, times the largest number of some; 8 bits are 127 steps of a row's absmax.
    const float most = form.kind == Kind::kInt8 ? 0.02F : form.kind == Kind::kNf4 ? 0.6F : 0.7F;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(std::fabs(all[i] - numbers[i]) < most);
  }
}

TEST_CASE("packing what was unpacked gives the same numbers", "[pretrained][quantization]") {
  for (const PackForm& form : {PackForm{Kind::kNf4, false}, PackForm{Kind::kInt8, false}}) {
    const Packed packed = pretrained::pack(drawn(kOut * kIn), kIn, form);
    std::vector<float> numbers(kOut * kIn), again(kOut * kIn);
    packed.view(form, kOut, kIn).read_rows(0, kOut, numbers.data());
    const Packed second = pretrained::pack(numbers, kIn, form);
    CHECK(second.codes == packed.codes);
    second.view(form, kOut, kIn).read_rows(0, kOut, again.data());
    // In 8 bits each number is rounded to float16 before, in 11 bits.
    for (std::size_t i = 0; i < again.size(); ++i) CHECK(again[i] == Approx(numbers[i]).epsilon(1e-3));
  }
}

TEST_CASE("packed weights that are damaged are refused with the name of the weight", "[pretrained][quantization]") {
  struct Case {
    const char* name;
    PackForm form;
    std::function<void(Tensors&)> damage;
    const char* reason;
  };
  const PackForm nf4{Kind::kNf4, false}, twice{Kind::kNf4, true}, int8{Kind::kInt8, false};
  const Case cases[] = {
      {"whole", nf4, [](Tensors&) {}, "it was read"},
      {"no scales", nf4, [](Tensors& t) { remove(t, ".absmax"); },
       "a.weight is quantized, and a.weight.absmax is missing"},
      {"no codes", nf4, [](Tensors& t) { remove(t, "a.weight"); }, "a.weight is quantized, and a.weight is missing"},
      {"no state", nf4, [](Tensors& t) { remove(t, "__nf4"); },
       "a.weight lacks a.weight.quant_state.bitsandbytes__nf4, which says how it is packed"},
      {"no map", nf4, [](Tensors& t) { remove(t, ".quant_map"); },
       "a.weight is quantized, and a.weight.quant_map is missing"},
      {"no nested scales", twice, [](Tensors& t) { remove(t, ".nested_absmax"); },
       "a.weight is quantized, and a.weight.nested_absmax is missing"},
      {"nested scales alone", twice,
       [](Tensors& t) {
         remove(t, ".nested_absmax");
         remove(t, ".nested_quant_map");
       },
       "a.weight is quantized, and a.weight.absmax is U8 [5], not F32 [5]"},
      {"another type", nf4, [](Tensors& t) { find(t, "__nf4").name = "a.weight.quant_state.bitsandbytes__af4"; },
       "a.weight is kept as af4, which roux does not read"},
      {"a state of another type", nf4, [](Tensors& t) { restate(t, "nf4", "fp4"); },
       "a.weight is kept as nf4, and the quant_type of its quant_state is \"fp4\""},
      {"no JSON", nf4, [](Tensors& t) { restate(t, "{", "["); },
       "a.weight is quantized, and a.weight.quant_state.bitsandbytes__nf4 is not JSON: "},
      {"a list", nf4, [](Tensors& t) { find(t, "__nf4") = tensor(find(t, "__nf4").name, "U8", text("[]")); },
       "a.weight is quantized, and a.weight.quant_state.bitsandbytes__nf4 is not an object of JSON"},
      {"a long state", nf4,
       [](Tensors& t) { find(t, "__nf4") = tensor(find(t, "__nf4").name, "U8", std::string(100'000, ' ')); },
       "a.weight is quantized, and a.weight.quant_state.bitsandbytes__nf4 is U8 [100000], not the bytes of a short "
       "text"},
      {"other blocks", nf4, [](Tensors& t) { restate(t, "64", "128"); },
       "a.weight has blocks of 128 numbers, and roux reads those of 64"},
      {"no blocks", nf4, [](Tensors& t) { restate(t, "blocksize", "size"); },
       "a.weight has blocks of missing numbers, and roux reads those of 64"},
      {"other nested blocks", twice, [](Tensors& t) { restate(t, "256", "0"); },
       "a.weight has blocks of 0 scales, and roux reads those of 256"},
      {"no offset", twice, [](Tensors& t) { restate(t, "nested_offset\": ", "nested_offset\": 1e39, \"x\": "); },
       "a.weight has quantized scales, and the nested_offset of its quant_state is 1e+39"},
      {"a shape of too many numbers", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[600, 50]"); },
       "a.weight is [600, 50], which is 15000 bytes in 4 bits, and has 150"},
      {"an absurd shape", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[2147483646, 2147483646]"); },
       "a.weight is [2147483646, 2147483646], which is 2305843004918726658 bytes in 4 bits, and has 150"},
      {"a shape beyond", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[9223372036854775807, 2]"); },
       "a.weight has the shape [9223372036854775807, 2] in its quant_state, not a number of outputs and one of inputs"},
      {"a negative shape", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[-6, -50]"); },
       "a.weight has the shape [-6, -50] in its quant_state, not a number of outputs and one of inputs"},
      {"three sizes", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[6, 5, 10]"); },
       "a.weight has the shape [6, 5, 10] in its quant_state, not a number of outputs and one of inputs"},
      {"rows of an odd length", nf4, [](Tensors& t) { restate(t, "[6, 50]", "[100, 3]"); },
       "a.weight has rows of 3 numbers, and roux reads two at a time"},
      {"scales of another number", nf4, [](Tensors& t) { find(t, ".absmax").shape = {6}; },
       "a.weight is quantized, and a.weight.absmax is F32 [6], not F32 [5]"},
      {"scales of another type", nf4, [](Tensors& t) { find(t, ".absmax").dtype = "F16"; },
       "a.weight is quantized, and a.weight.absmax is F16 [5], not F32 [5]"},
      {"another map", nf4,
       [](Tensors& t) {
         find(t, ".quant_map") = tensor("a.weight.quant_map", "F32", components::kernels::kFp4.values);
       },
       "a.weight is kept with values of its own (a.weight.quant_map), which roux does not read"},
      {"in 8 bits", int8, [](Tensors&) {}, "it was read"},
      {"in 8 bits, older", int8, [](Tensors& t) { remove(t, "weight_format"); }, "it was read"},
      {"no scales of rows", int8, [](Tensors& t) { remove(t, "SCB"); }, "a.weight is quantized, and a.SCB is missing"},
      {"scales of other rows", int8, [](Tensors& t) { find(t, "SCB").shape = {5}; },
       "a.weight is quantized, and a.SCB is F32 [5], not F32 [6]"},
      {"no rows", int8, [](Tensors& t) { find(t, "a.weight").shape = {300}; },
       "a.weight is I8 [300], and a weight in 8 bits is I8 with outputs and inputs"},
      {"bytes of another type", int8, [](Tensors& t) { find(t, "a.weight").dtype = "U8"; },
       "a.weight is U8 [6, 50], and a weight in 8 bits is I8 with outputs and inputs"},
      {"the order of a GPU", int8, [](Tensors& t) { find(t, "weight_format").content = {'\2'}; },
       "a.weight has its rows in an order of a GPU (weight_format 2), which bitsandbytes no longer writes"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Tensors file = written(c.form);
    c.damage(file);
    const std::string found = reason(file);
    INFO(found);
    const std::string expected =
        c.reason == std::string("it was read") ? c.reason : "f.safetensors: " + std::string(c.reason);
    CHECK(found.starts_with(expected));
  }
}
