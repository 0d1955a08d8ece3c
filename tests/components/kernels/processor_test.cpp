#include "components/kernels/processor.h"

#include <catch2/catch.hpp>

namespace components::kernels {
namespace {

Processor with(bool bf16, bool amx, bool intel, int model) { return {true, true, bf16, amx, intel, model}; }

}  // namespace

TEST_CASE("bfloat16 is multiplied faster where the model does so, not where the flag is", "[kernels][processor]") {
  struct Case {
    const char* name;
    Processor processor;
    bool is_faster;
  };
  const Case cases[] = {
      {"EPYC, Zen 4", with(true, false, false, 0), true},
      {"EPYC, Zen 3", with(false, false, false, 0), false},
      {"Xeon, Sapphire Rapids", with(true, true, true, 0x8F), true},
      {"Xeon, Sapphire Rapids, in a machine without AMX", with(true, false, true, 0x8F), false},
      {"Xeon, Granite Rapids, in a machine without AMX", with(true, false, true, 0xAD), false},
      {"Xeon, Cooper Lake", with(true, false, true, 0x55), true},
      {"Xeon, Cascade Lake", with(false, false, true, 0x55), false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(c.processor.multiplies_bf16_faster() == c.is_faster);
  }
}

TEST_CASE("ROUX_CPU_CAPABILITY leaves what its level has", "[kernels][processor]") {
  const Processor all = with(true, true, true, 0x8F);
  const auto levels = [&all](const char* capability) {
    const Processor left = limited(all, capability, "");
    return std::string(left.avx2 ? "2" : "") + (left.avx512 ? "5" : "") + (left.avx512_bf16 ? "b" : "") +
           (left.amx_bf16 ? "a" : "");
  };
  CHECK(levels("") == "25ba");
  CHECK(levels("avx512_bf16") == "25b");
  CHECK(levels("avx512") == "25");
  CHECK(levels("avx2") == "2");
  CHECK(levels("default").empty());
}

TEST_CASE("ROUX_CPU_MAKER makes the choice of the other maker", "[kernels][processor]") {
  const Processor xeon = with(true, true, true, 0x8F), epyc = with(true, false, false, 0);
  CHECK(limited(epyc, "", "intel").intel);
  CHECK_FALSE(limited(epyc, "", "intel").multiplies_bf16_faster());
  CHECK_FALSE(limited(xeon, "", "amd").intel);
  CHECK_FALSE(limited(xeon, "", "amd").amx_bf16);
  CHECK(limited(xeon, "", "amd").multiplies_bf16_faster());
  CHECK(limited(xeon, "", "intel").model == 0x8F);
  CHECK(limited(xeon, "avx2", "amd").avx2);
  CHECK_FALSE(limited(xeon, "avx2", "amd").avx512);
}

}  // namespace components::kernels
