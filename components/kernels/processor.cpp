#include "components/kernels/processor.h"

#include <cctype>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace components::kernels {
namespace {

constexpr int kCooperLake = 0x55;  // those of this number that have AVX-512 BF16: two such units, and no AMX

Processor found_here() {
  Processor found;
#if defined(__x86_64__)
  found.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  found.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  found.avx512_bf16 = found.avx512 && __builtin_cpu_supports("avx512bf16");
#if !defined(__clang__)  // clang-tidy's does not know the word
  found.amx_bf16 = __builtin_cpu_supports("amx-bf16");
#endif
  found.intel = __builtin_cpu_is("intel");
  unsigned version = 0, other = 0, features = 0, more = 0;
  if (found.intel && __get_cpuid(1, &version, &other, &features, &more) != 0) {
    found.model = static_cast<int>(((version >> 4) & 0xFU) | ((version >> 12) & 0xF0U));
  }
#endif
  return found;
}

/// In small letters; "" for none.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

bool Processor::multiplies_bf16_faster() const {
  if (amx_bf16) return true;
  return avx512_bf16 && (!intel || model == kCooperLake);
}

Processor limited(Processor found, const std::string& capability, const std::string& maker) {
  const bool is_default = capability == "default", is_avx2 = capability == "avx2", is_avx512 = capability == "avx512";
  if (is_default) found.avx2 = false;
  if (is_default || is_avx2) found.avx512 = false;
  if (is_default || is_avx2 || is_avx512) found.avx512_bf16 = false;
  if (is_default || is_avx2 || is_avx512 || capability == "avx512_bf16") found.amx_bf16 = false;
  if (maker == "intel" && !found.intel) found.intel = true, found.model = 0;
  if (maker == "amd" && found.intel) found.intel = found.amx_bf16 = false, found.model = 0;
  return found;
}

const Processor& processor() {
  static const Processor used = limited(found_here(), variable("ROUX_CPU_CAPABILITY"), variable("ROUX_CPU_MAKER"));
  return used;
}

}  // namespace components::kernels
