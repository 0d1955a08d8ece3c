#include "tests/fuzz/mutator.h"

#include <string_view>

namespace tests {
namespace {

constexpr std::size_t kTextMax = 1 << 16;

constexpr std::string_view kWords[] = {
    "${",
    "}",
    "${vars.x}",
    "${env:HOME}",
    "${env:X:-",
    "$${",
    "${model}",
    "${data.train.path}",
    "${recipe_dir}",
    "${vars",
    "&a ",
    "*a",
    "&a [*a]",
    "<<: *a",
    "!!str ",
    "!",
    "? ",
    ": ",
    "- ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "|\n",
    ">-\n ",
    "|9\n",
    "[",
    "]",
    "{",
    "}",
    "[[[[[[[[",
    "{a: {a: {a: ",
    "\"",
    "'",
    "#",
    "\t",
    "\n",
    "\r\n",
    "\xEF\xBB\xBF",
    "\xFF",
    "\xC3",
    "\xE2\x80\xA8",
    "~",
    "null",
    "true",
    ".inf",
    ".nan",
    "-0",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "1e400",
    "1e-400",
    "0o777",
    "1_000",
    "-1",
    "type: gpt",
    "type: mlp",
    "type: sequential",
    "layers:",
    "type: linear",
    "optimizer: adamw",
    "loss: mse",
    "training:",
    "max_steps: 1",
    "extends: r.yaml",
    "extends: []",
    "vars:",
    "data:",
    "train:",
    "val:",
    "micro_batch_size: 3",
    "global_batch_size: 7",
    "gradient_accumulation_steps: 2",
    "learning_rate: 1",
    "lr_scheduler: cosine",
    "warmup_ratio: 0.5",
    "2ep",
    "500ba",
    "1e6tok",
    "30min",
    "0.1dur",
    "eval_steps: 2ep",
    "param_groups:",
    "pattern: \"*\"",
    "no_decay: [1d, bias]",
    "metrics: [accuracy]",
    "split: \":90%\"",
    "callbacks:",
    "monitor: val/loss",
    "compat: accelerate",
    "norm_type: inf",
    "secret",
    "api_key: sk-0123456789012345678901234567890",
};

}  // namespace

std::size_t Mutator::line_start(const std::string& text) {
  const std::size_t newline = text.find('\n', below(text.size() + 1));
  return newline == std::string::npos ? text.size() : newline + 1;
}

std::string Mutator::some_lines(const std::string& text) {
  const std::size_t begin = line_start(text);
  std::size_t end = begin;
  for (std::size_t lines = 1 + below(4); lines > 0 && end < text.size(); --lines) {
    const std::size_t newline = text.find('\n', end);
    end = newline == std::string::npos ? text.size() : newline + 1;
  }
  return text.substr(begin, end - begin);
}

void Mutator::mutate(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = std::min(1 + below(16), text.size() - at);
  switch (below(13)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1: text.insert(at, 1, static_cast<char>(random_())); break;
    case 2: text.erase(at, length); break;
    case 3: text.insert(below(text.size() + 1), text.substr(at, length)); break;
    case 4:
    case 5:
    case 6: text.insert(at, kWords[below(std::size(kWords))]); break;
    case 7: text.insert(line_start(text), some_lines(any_seed())); break;
    case 8: text.insert(line_start(text), some_lines(text)); break;
    case 9: {
      const std::size_t begin = line_start(text);
      text.erase(begin, some_lines(text.substr(begin)).size());
      break;
    }
    case 10: text.insert(line_start(text), below(8), ' '); break;
    case 11: {
      const std::string& other = any_seed();
      text = text.substr(0, at) + other.substr(below(other.size()));
      break;
    }
    default: {
      // One part many times over: depth and repetition are where readers fall.
      const std::string part = text.substr(at, length);
      std::string many;
      for (std::size_t i = below(300); i > 0; --i) many += part;
      text.insert(at, many);
    }
  }
  if (text.size() > kTextMax) text.resize(kTextMax);
}

std::string Mutator::next() {
  std::string text = any_seed();
  for (std::size_t rounds = 1 + below(6); rounds > 0; --rounds) mutate(text);
  return text;
}

}  // namespace tests
