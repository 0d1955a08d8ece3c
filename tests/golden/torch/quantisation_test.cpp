// Numbers in 8 and 4 bits against bitsandbytes, topic quantisation.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/quantization/blockwise.h"
#include "components/quantization/int8_rows.h"
#include "tests/support/golden.h"

// R: rows   C: columns

using components::kernels::CodeTable;
using components::kernels::FourBitTable;
using components::quantization::Int8Rows;
using tests::golden::Case;
using tests::golden::Json;

namespace quantization = components::quantization;
namespace kernels = components::kernels;

namespace {

constexpr tests::golden::Tolerance kTolerance{1e-6, 1e-9};

std::vector<float> floats(const Json& json) {
  const std::vector<double> numbers = tests::golden::numbers(json);
  return {numbers.begin(), numbers.end()};
}

template <typename Numbers>
std::vector<double> doubles(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

template <typename Numbers>
void check(const std::string& what, const Numbers& got, const Json& expected) {
  CHECK(tests::golden::differences(what, doubles(got), expected, kTolerance) == "");
}

/// Integers, to the last bit.
template <typename Numbers>
void check_exact(const std::string& what, const Numbers& got, const Json& expected) {
  CHECK(tests::golden::differences(what, doubles(got), expected, {0, 0}) == "");
}

const FourBitTable& four_bit_table(const Json& type) { return type == "nf4" ? kernels::kNf4 : kernels::kFp4; }

void check_table(const Case& golden) {
  const std::string type = golden.input.at("type");
  if (type == "dynamic_signed_8bit") {
    check_exact(golden.name, kernels::kSignedCodes.values, Json(floats(golden.expected.at("values"))));
  } else {
    check_exact(golden.name, four_bit_table(type).values, Json(floats(golden.expected.at("values"))));
  }
}

/// What bitsandbytes' library for CPUs reads where rows are no whole number of blocks: the absmax of whole blocks
/// before a row, though blocks run over rows. Where they are, it is table[code] * absmax.
std::vector<float> dequantised_by_rows(const std::vector<std::uint8_t>& codes, const std::vector<float>& absmax,
                                       const FourBitTable& table, std::int64_t columns, std::int64_t block) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / columns, column = static_cast<std::int64_t>(i) % columns;
    const std::int64_t of = row * (columns / block) + column / block;
    numbers.push_back(table.values[codes[i]] * absmax[static_cast<std::size_t>(of)]);
  }
  return numbers;
}

void check_four_bit(const Case& golden) {
  const FourBitTable& table = four_bit_table(golden.input.at("type"));
  const std::int64_t block = golden.input.at("blocksize");
  const std::vector<float> x = floats(golden.input.at("x"));
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(quantization::packed_bytes(count))), codes;
  std::vector<float> absmax(static_cast<std::size_t>(quantization::blocks_of(count, block))), again(x.size());
  quantization::quantize_four_bit(x, block, table, packed, absmax);
  for (const std::uint8_t byte : packed)
    codes.insert(codes.end(), {std::uint8_t(byte >> 4U), std::uint8_t(byte & 15U)});
  quantization::dequantize_four_bit(packed, absmax, block, table, again);
  check(golden.name + " absmax", absmax, golden.expected.at("absmax"));
  check_exact(golden.name + " packed", packed, golden.expected.at("packed"));
  check_exact(golden.name + " codes", codes, golden.expected.at("codes"));
  const Json& shape = golden.input.at("shape");
  const std::int64_t columns = shape.size() > 1 ? shape.back().get<std::int64_t>() : count;
  const std::vector<float> by_rows = dequantised_by_rows(codes, absmax, table, columns, block);
  check(golden.name + " dequantised", by_rows, golden.expected.at("dequantised"));
  if (columns % block == 0 || columns == count) check_exact(golden.name + " dequantised", again, Json(by_rows));
  for (std::size_t i = 0; i < again.size(); ++i)
    CHECK(again[i] == table.values[codes[i]] * absmax[i / static_cast<std::size_t>(block)]);
}

void check_nested(const Case& golden) {
  const std::vector<float> absmax = floats(golden.input.at("absmax"));
  const quantization::NestedAbsmax nested = quantization::nest(absmax);
  std::vector<float> again(absmax.size());
  quantization::unnest(nested, again);
  CHECK(golden.expected.at("nested_blocksize") == quantization::kNestedBlock);
  check(golden.name + " offset", std::vector<float>{nested.offset}, Json::array({golden.expected.at("offset")}));
  check_exact(golden.name + " absmax8", nested.codes, golden.expected.at("absmax8"));
  check(golden.name + " absmax2", nested.absmax, golden.expected.at("absmax2"));
  check(golden.name + " dequantised", again, golden.expected.at("dequantised_absmax"));
}

/// What bitsandbytes' library for CPUs makes of a number between -1 and 1 before it looks for the nearest code: the
/// middle of one of 65,536 bins. So 0, which lies between two of them, becomes 1.5e-5 there, and 0 on a GPU and here.
float middle_of_bin(float scaled) {
  constexpr float kBins = 65'535.0F;
  const float bin = static_cast<float>(static_cast<std::int32_t>((scaled + 1.0F) * 0.5F * kBins + 0.5F));
  return -1.0F + 2.0F * bin / kBins;
}

void check_blockwise(const Case& golden) {
  const std::int64_t block = golden.input.at("blocksize");
  const std::vector<float> x = floats(golden.input.at("x"));
  const std::vector<double> expected = tests::golden::numbers(golden.expected.at("codes"));
  std::vector<std::uint8_t> codes(x.size());
  std::vector<float> absmax(static_cast<std::size_t>(quantization::blocks_of(std::int64_t(x.size()), block)));
  quantization::quantize_blockwise(x, block, kernels::kSignedCodes, codes, absmax);
  check(golden.name + " absmax", absmax, golden.expected.at("absmax"));
  // The same numbers through the bins give exactly its codes; as they are, the codes differ where a bin matters.
  std::vector<float> binned = x;
  int differing = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = absmax[i / static_cast<std::size_t>(block)];
    const float middle = middle_of_bin(x[i] * (1.0F / scale));
    binned[i] = middle == 1.0F || middle == -1.0F ? x[i] : middle * scale;
    if (codes[i] == expected[i]) continue;
    ++differing;
    CHECK(x[i] == 0.0F);
    CHECK(kernels::kSignedCodes.values[codes[i]] == 0.0F);
  }
  CHECK(differing <= 4);
  quantization::quantize_blockwise(binned, block, kernels::kSignedCodes, codes, absmax);
  check_exact(golden.name + " codes", codes, golden.expected.at("codes"));
  std::vector<float> again(x.size());
  quantization::dequantize_blockwise(codes, absmax, block, kernels::kSignedCodes, again);
  check(golden.name + " dequantised", again, golden.expected.at("dequantised"));
}

Int8Rows int8_rows(const Json& x_RC, float outlier_min = 0.0F) {
  return quantization::quantize_int8_rows(floats(x_RC), static_cast<std::int64_t>(x_RC[0].size()), outlier_min);
}

void check_int8_rows(const Case& golden) {
  const Int8Rows rows = int8_rows(golden.input.at("x"));
  std::vector<float> again(rows.numbers_RC.size());
  quantization::dequantize_int8_rows(rows, again);
  check_exact(golden.name + " q", rows.numbers_RC, golden.expected.at("q"));
  check(golden.name + " row_stats", rows.absmax_R, golden.expected.at("row_stats"));
  check(golden.name + " dequantised", again, golden.expected.at("dequantised"));
}

void check_outliers(const Case& golden) {
  const Int8Rows rows = int8_rows(golden.input.at("x"), golden.input.at("threshold"));
  check_exact(golden.name + " outliers", rows.outliers, golden.expected.at("outlier_cols"));
  check_exact(golden.name + " q", rows.numbers_RC, golden.expected.at("q"));
  check(golden.name + " row_stats", rows.absmax_R, golden.expected.at("row_stats"));
}

/// By the formula of the case.
void check_int8_linear(const Case& golden) {
  const std::vector<float> x = floats(golden.input.at("x"));
  const Int8Rows of_x = int8_rows(golden.input.at("x"), golden.input.at("threshold"));
  const Int8Rows of_w = int8_rows(golden.input.at("weight"));
  check_exact(golden.name + " outliers", of_x.outliers, golden.expected.at("outlier_cols"));
  std::vector<float> w(of_w.numbers_RC.size());
  quantization::dequantize_int8_rows(of_w, w);
  const std::size_t rows = of_x.absmax_R.size(), outputs = of_w.absmax_R.size(), columns = x.size() / rows;
  std::vector<double> y;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0.0;
      for (std::size_t c = 0; c < columns; ++c)
        sum += of_x.numbers_RC[r * columns + c] * of_w.numbers_RC[o * columns + c];
      sum *= double(of_x.absmax_R[r]) * double(of_w.absmax_R[o]) / (127.0 * 127.0);
      for (const std::int64_t c : of_x.outliers)
        sum += double(x[r * columns + std::size_t(c)]) * double(w[o * columns + std::size_t(c)]);
      y.push_back(sum);
    }
  }
  CHECK(tests::golden::differences(golden.name, y, golden.expected.at("y"), kTolerance) == "");
}

void check_memory(const Case& golden) {
  const std::int64_t rows = golden.input.at("rows"), columns = golden.input.at("cols");
  const std::int64_t block = golden.input.at("blocksize");
  CHECK(4 * rows * columns == golden.expected.at("float32"));
  CHECK(quantization::int8_rows_bytes(rows, columns) == golden.expected.at("int8"));
  CHECK(quantization::four_bit_bytes(rows * columns, block, false) == golden.expected.at("four_bit"));
  CHECK(quantization::four_bit_bytes(rows * columns, block, true) == golden.expected.at("four_bit_double"));
}

}  // namespace

TEST_CASE("numbers of 8 and 4 bits are those of bitsandbytes", "[golden][quantization]") {
  tests::for_each_case("quantisation", [](const Case& golden) {
    INFO(golden.kind << " " << golden.name);
    if (golden.kind == "code_table")
      check_table(golden);
    else if (golden.kind == "quant4")
      check_four_bit(golden);
    else if (golden.kind == "double_quant")
      check_nested(golden);
    else if (golden.kind == "blockwise8")
      check_blockwise(golden);
    else if (golden.kind == "int8_rowwise")
      check_int8_rows(golden);
    else if (golden.kind == "int8_outliers")
      check_outliers(golden);
    else if (golden.kind == "int8_linear")
      check_int8_linear(golden);
    else if (golden.kind == "memory")
      check_memory(golden);
    else
      return false;
    return true;
  });
}
