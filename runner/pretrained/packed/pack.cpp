#include "runner/pretrained/packed/pack.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>

#include "components/quantization/blockwise.h"
#include "components/quantization/int8_rows.h"
#include "runner/artifact/io/element.h"

namespace runner::pretrained {
namespace {

namespace quantization = components::quantization;
using Kind = PackedWeight::Kind;

constexpr std::int64_t kGrainNumbers = 1 << 16;  ///< of a thread: some ten microseconds

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

Packed pack_four_bits(std::span<const float> numbers, const PackForm& form) {
  constexpr std::int64_t kBlock = quantization::kBlockOfFourBits;
  const auto count = static_cast<std::int64_t>(numbers.size());
  const std::int64_t blocks = quantization::blocks_of(count, kBlock);
  Packed made;
  made.codes.resize(size(quantization::packed_bytes(count)));
  made.scales.resize(size(blocks));
  for_pieces(blocks, kGrainNumbers / kBlock, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * kBlock, some = std::min(count, last * kBlock) - begin;
    quantization::quantize_four_bit(
        numbers.subspan(size(begin), size(some)), kBlock, quantization::table_of(form.kind),
        std::span(made.codes).subspan(size(begin / 2), size(quantization::packed_bytes(some))),
        std::span(made.scales).subspan(size(first), size(last - first)));
  });
  if (!form.double_quant) return made;
  quantization::NestedAbsmax nested = quantization::nest(made.scales);
  made.nested_codes = std::move(nested.codes);
  made.scales = std::move(nested.absmax);
  made.nested_offset = nested.offset;
  return made;
}

/// Of what float16 holds of the numbers, as Transformers has them packed.
Packed pack_eight_bits(std::span<const float> numbers, std::int64_t in) {
  const std::int64_t rows = static_cast<std::int64_t>(numbers.size()) / in;
  Packed made;
  made.codes.resize(numbers.size());
  made.scales.resize(size(rows));
  for_pieces(rows, std::max<std::int64_t>(1, kGrainNumbers / in), [&](std::int64_t first, std::int64_t last) {
    const std::span<const float> some = numbers.subspan(size(first * in), size((last - first) * in));
    std::vector<float> low(some.begin(), some.end());
    using Half = artifact::F16Element;
    for (float& number : low) number = Half::value(Half::to_bits(static_cast<double>(number)));
    const quantization::Int8Rows rows_of = quantization::quantize_int8_rows(low, in);
    std::transform(rows_of.numbers_RC.begin(), rows_of.numbers_RC.end(), made.codes.begin() + first * in,
                   [](std::int8_t code) { return static_cast<std::uint8_t>(code); });
    std::copy(rows_of.absmax_R.begin(), rows_of.absmax_R.end(), made.scales.begin() + first);
  });
  return made;
}

template <typename T>
artifact::TensorBytes bytes_of(const std::string& name, const char* dtype, std::vector<std::int64_t> shape,
                               const std::vector<T>& content) {
  return {name, dtype, std::move(shape), content.data(), static_cast<std::int64_t>(content.size() * sizeof(T)), {}};
}

}  // namespace

PackForm PackForm::of(const core::Node& quantization) {
  const auto is_true = [&quantization](const char* key) {
    const core::Node* value = quantization.find(key);
    return value != nullptr && value->is_bool() && value->as_bool();
  };
  if (is_true("load_in_8bit")) return {Kind::kInt8, false};
  const core::Node* type = quantization.find("bnb_4bit_quant_type");
  const bool is_nf4 = type != nullptr && type->is_string() && type->as_string() == "nf4";
  return {is_nf4 ? Kind::kNf4 : Kind::kFp4, is_true("bnb_4bit_use_double_quant")};
}

PackedWeight Packed::view(const PackForm& form, std::int64_t out, std::int64_t in) const {
  PackedWeight weight;
  weight.kind = form.kind;
  weight.out = out;
  weight.in = in;
  const auto rows = static_cast<std::int64_t>(scales.size()), bytes = static_cast<std::int64_t>(codes.size());
  if (form.kind == Kind::kInt8) {
    weight.codes = bytes_of("codes", "I8", {out, in}, codes);
  } else {
    weight.codes = bytes_of("codes", "U8", {bytes, 1}, codes);
  }
  if (nested_codes.empty()) {
    weight.scales = bytes_of("scales", "F32", {rows}, scales);
  } else {
    weight.scales = bytes_of("scales", "U8", {static_cast<std::int64_t>(nested_codes.size())}, nested_codes);
    weight.nested_scales = bytes_of("nested", "F32", {rows}, scales);
    weight.nested_offset = nested_offset;
  }
  return weight;
}

Packed pack(std::span<const float> weight_OI, std::int64_t in, const PackForm& form) {
  return form.kind == Kind::kInt8 ? pack_eight_bits(weight_OI, in) : pack_four_bits(weight_OI, form);
}

void for_pieces(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& run) {
  const std::int64_t most = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, most);
  std::vector<std::jthread> working;
  for (std::int64_t i = 1; i < threads; ++i) {
    working.emplace_back([&, i] { run(count * i / threads, count * (i + 1) / threads); });
  }
  run(0, count / threads);
  working.clear();  // joins
}

}  // namespace runner::pretrained
