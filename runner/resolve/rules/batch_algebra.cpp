#include "runner/resolve/rules/rules.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace runner::resolve {
namespace {

using core::Node;

constexpr const char* kMicro = "training.micro_batch_size";
constexpr const char* kAccumulation = "training.gradient_accumulation_steps";
constexpr const char* kGlobal = "training.global_batch_size";
constexpr const char* kProcesses = "launch.num_processes";
constexpr const char* kSplit = "loader.split_batches";
constexpr const char* kMemory = "training.max_memory";
constexpr const char* kShrinks = "training.auto_micro_batch";
constexpr std::int64_t kLanguageMicroBatchMax = 4;

/// Whether the optimizer cannot take back a step that ran out of memory.
bool moves_in_backward(const SettledTree& tree) {
  const auto optimizer = tree.text("optimizer.type");
  return optimizer == "lomo" || optimizer == "adalomo";
}

/// What a size is computed from: the other two, and the number of processes.
std::string origin_of(std::string_view path) {
  if (path == kMicro) return "computed from global_batch_size, gradient_accumulation_steps and num_processes";
  if (path == kAccumulation) return "computed from global_batch_size, micro_batch_size and num_processes";
  return "computed from micro_batch_size, gradient_accumulation_steps and num_processes";
}

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::string processes_text(std::int64_t processes) {
  return processes == 1 ? "" : " x num_processes " + std::to_string(processes);
}

/// The global batch divided by one factor (and the processes) gives the other one.
void divide(SettledTree& tree, const char* divisor_path, const char* quotient_path, std::int64_t processes) {
  const std::int64_t global = *tree.integer(kGlobal);
  const std::optional<std::int64_t> divisor = product(*tree.integer(divisor_path), processes);
  if (divisor && global % *divisor == 0) {
    return tree.fill(quotient_path, Node::integer(global / *divisor), origin_of(quotient_path));
  }
  const std::string name = std::string(quotient_path).substr(std::string(quotient_path).rfind('.') + 1);
  std::string hint = "remove global_batch_size, or make it a multiple";
  if (divisor) {
    const std::int64_t below = global / *divisor * *divisor;
    const std::optional<std::int64_t> above = product(global / *divisor + 1, *divisor);
    hint = "the nearest that do are " + (below > 0 ? std::to_string(below) + " and " : std::string()) +
           (above ? std::to_string(*above) : std::string("larger"));
    if (below == 0 && above) hint = "the smallest that does is " + std::to_string(*above);
  }
  tree.error(kGlobal,
             "global_batch_size is " + std::to_string(global) + ", which is not a multiple of " +
                 tree.with_line(divisor_path) + processes_text(processes) + ", so there is no whole " + name,
             hint);
}

/// Micro-batches of a step that the busiest process makes, where they are dealt out in turn.
std::int64_t largest_share(std::int64_t batches, std::int64_t processes) { return (batches - 1) / processes + 1; }

/// Micro-batches stay whole, and need not be as many for each process.
void deal(SettledTree& tree, std::int64_t processes) {
  const std::int64_t global = *tree.integer(kGlobal), micro = *tree.integer(kMicro);
  if (global % micro != 0) return divide(tree, kMicro, kAccumulation, 1);  // which says what is wrong
  tree.fill(kAccumulation, Node::integer(largest_share(global / micro, processes)), origin_of(kAccumulation));
}

/// Long texts take much memory each: of a global batch, a few at a time, which it is a multiple of.
std::int64_t language_micro_batch(std::int64_t global, std::int64_t processes) {
  std::int64_t size = kLanguageMicroBatchMax;
  while (size > 1 && global % (size * processes) != 0) --size;
  return size;
}

/// With `max_memory` the largest that fits: all samples of a process at once, halved until they do.
void settle_language(SettledTree& tree, std::int64_t global, std::int64_t processes) {
  if (tree.value(kMemory) != nullptr && global % processes == 0 && !moves_in_backward(tree)) {
    const std::string why = "the largest that fits into max_memory";
    tree.fill(kMicro, Node::integer(global / processes), why + " is at most this");
    if (!tree.text(kShrinks)) tree.fill(kShrinks, Node::string("halve"), "finds " + why);
  } else {
    tree.fill(kMicro, Node::integer(language_micro_batch(global, processes)), "default for a pretrained model",
              core::Origin::kDefault);
  }
  deal(tree, processes);
}

/// A micro-batch of all processes is cut into as many parts.
void check_split(SettledTree& tree) {
  const std::optional<std::int64_t> micro = tree.integer(kMicro);
  const std::int64_t processes = tree.integer(kProcesses).value_or(1);
  if (!micro || !tree.is_true(kSplit) || *micro % processes == 0) return;
  tree.error(kSplit,
             "split_batches cuts each micro-batch into num_processes " + std::to_string(processes) + " parts, but " +
                 tree.with_line(kMicro) + " is not a multiple of that",
             "use a micro_batch_size divisible by the number of processes, or remove split_batches");
}

void settle(SettledTree& tree) {
  for (const char* path : {"training", "launch", kMicro, kAccumulation, kGlobal, kProcesses}) {
    if (tree.was_refused(path)) return;
  }
  const std::optional<std::int64_t> micro = tree.integer(kMicro);
  const std::optional<std::int64_t> accumulation = tree.integer(kAccumulation);
  const std::optional<std::int64_t> global = tree.integer(kGlobal);
  // Of all processes together where a micro-batch is split.
  const std::int64_t processes = tree.is_true(kSplit) ? 1 : tree.integer(kProcesses).value_or(1);

  if (!micro && !global)
    return tree.error(
        "training", "training needs micro_batch_size or global_batch_size",
        accumulation
            ? "gradient_accumulation_steps alone does not determine the samples of a step"
            : "micro_batch_size: samples of one forward pass; global_batch_size: samples of one optimizer step");
  if (global && micro && !accumulation) return deal(tree, processes);
  if (global && accumulation && !micro) return divide(tree, kAccumulation, kMicro, processes);
  if (global && !micro && tree.text("model.type") == "transformers") return settle_language(tree, *global, processes);
  if (global && !micro) {
    tree.fill(kAccumulation, Node::integer(1), "default of training", core::Origin::kDefault);
    return divide(tree, kAccumulation, kMicro, processes);
  }
  if (!accumulation) tree.fill(kAccumulation, Node::integer(1), "default of training", core::Origin::kDefault);
  const std::optional<std::int64_t> pass = product(*micro, accumulation.value_or(1));
  const std::optional<std::int64_t> total = pass ? product(*pass, processes) : std::nullopt;
  if (!total)
    return tree.error(kMicro, tree.with_line(kMicro) + " x " + tree.with_line(kAccumulation) + " is too large");
  if (!global) return tree.fill(kGlobal, Node::integer(*total), origin_of(kGlobal));
  const bool dealt = *global % *micro == 0 && largest_share(*global / *micro, processes) == accumulation.value_or(1);
  if (*global == *total || dealt) return;
  tree.error(kGlobal,
             "global_batch_size is " + std::to_string(*global) + ", but " + tree.with_line(kMicro) + " x " +
                 tree.with_line(kAccumulation) + processes_text(processes) + " is " + std::to_string(*total),
             "give two of the three; the third follows");
}

}  // namespace

void batch_algebra(SettledTree& tree) {
  settle(tree);
  check_split(tree);
}

}  // namespace runner::resolve
