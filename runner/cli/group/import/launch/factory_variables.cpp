#include "runner/cli/group/import/launch/factory_variables.h"

#include <utility>

#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

constexpr std::pair<const char*, const char*> kFlags[] = {
    {"NPROC_PER_NODE", "--nproc_per_node"}, {"NODE_RANK", "--node_rank"},       {"MASTER_ADDR", "--master_addr"},
    {"MASTER_PORT", "--master_port"},       {"MAX_RESTARTS", "--max_restarts"}, {"NNODES", "--nnodes"}};

}  // namespace

// Source  src/llamafactory/launcher.py of LLaMA-Factory ff6d4d12
std::vector<ShellWord> factory_launcher(const std::map<std::string, ShellWord>& environment) {
  const auto get = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() || found->second.text.empty() ? nullptr : &found->second;
  };
  std::vector<ShellWord> words;
  const auto add = [&](const std::string& flag, const std::string& value, int line) {
    if (words.empty()) words.push_back({.text = "torchrun", .line = line});
    words.push_back({.text = flag + "=" + value, .line = line});
  };
  const ShellWord *least = get("MIN_NNODES"), *most = get("MAX_NNODES");
  const bool is_elastic = least != nullptr && most != nullptr && get("RDZV_ID") != nullptr;
  for (const auto& [name, flag] : kFlags) {
    const ShellWord* word = get(name);
    if (word != nullptr && !(is_elastic && std::string(name) == "NNODES")) add(flag, word->text, word->line);
  }
  if (is_elastic) add("--nnodes", least->text + ":" + most->text, most->line);
  const ShellWord* forced = get("FORCE_TORCHRUN");
  const std::string word = forced == nullptr ? "" : core::lower(forced->text);
  const bool is_forced = word == "1" || word == "true" || word == "y";
  if (get("NPROC_PER_NODE") != nullptr || (words.empty() && !is_forced)) return words;
  const int line = is_forced ? forced->line : words.front().line;
  add("--nproc_per_node", "gpu", line);
  return words;
}

}  // namespace runner::cli
