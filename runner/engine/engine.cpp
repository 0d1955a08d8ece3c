#include "runner/engine/engine.h"

#include <ATen/Config.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/version.h>
#include <unistd.h>

#include <exception>

#include "components/data/language/first_records.h"
#include "components/tensor/cpu_capability.h"
#include "generated/section/precision.h"
#include "runner/core/error.h"
#include "runner/distributed/rendezvous_host.h"
#include "runner/engine/generate.h"
#include "runner/engine/inspect.h"
#include "runner/engine/limits_file.h"
#include "runner/engine/look_at_data.h"
#include "runner/engine/machine.h"
#include "runner/engine/memory/measure.h"
#include "runner/engine/plan.h"
#include "runner/engine/self_test.h"
#include "runner/engine/warm_up.h"
#include "runner/resolve/recipe.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/lr_finder.h"
#include "runner/train/save/resume.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

// LibTorch's exceptions end here: the torch-free program does not know their type. Any other one is a bug in roux.
template <typename Work>
auto guarded(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (dynamic_cast<const c10::Error*>(&error) == nullptr && !train::is_out_of_memory(error)) throw;
    throw train::as_run_error(error);
  }
}

class GuardedGenerator final : public TextGenerator {
 public:
  explicit GuardedGenerator(std::unique_ptr<TextGenerator> inner) : inner_(std::move(inner)) {}
  std::optional<GenerationReport> generate(const std::vector<Prompt>& prompts, GenerationSink& sink,
                                           core::Diagnostics& diagnostics) override {
    return guarded([&] { return inner_->generate(prompts, sink, diagnostics); });
  }
  std::optional<PromptSize> measure(const Prompt& prompt, core::Diagnostics& diagnostics) override {
    return guarded([&] { return inner_->measure(prompt, diagnostics); });
  }

 private:
  std::unique_ptr<TextGenerator> inner_;
};

class LibTorchEngine final : public Engine {
 public:
  std::optional<Plan> plan(const resolve::Recipe& recipe, const PlanRequest& request,
                           core::Diagnostics& diagnostics) override {
    return guarded([&] { return make_plan(recipe, request, diagnostics); });
  }
  std::optional<SizeEstimate> estimate_sizes(const resolve::Recipe& recipe, const SizeRequest& request,
                                             core::Diagnostics& diagnostics) override {
    return guarded([&] { return engine::estimate_sizes(recipe, request, diagnostics); });
  }
  int train(const resolve::Recipe& recipe, const TrainRequest& request, core::Diagnostics& diagnostics) override {
    return guarded([&] { return train::train(recipe, request, cpu_peak(recipe), diagnostics); });
  }
  void warm_up() override { guarded(engine::warm_up); }
  std::optional<LrRangeTest> find_lr(const resolve::Recipe& recipe, const LrRangeRequest& request,
                                     core::Diagnostics& diagnostics) override {
    return guarded([&] { return train::find_lr(recipe, request, diagnostics); });
  }
  std::optional<Evaluation> evaluate(const resolve::Recipe& recipe, const EvalRequest& request,
                                     core::Diagnostics& diagnostics) override {
    return guarded([&] { return evaluate_checkpoint(recipe, request, peak_flops(recipe, request), diagnostics); });
  }
  std::optional<PredictedSet> predict(const resolve::Recipe& recipe, const EvalRequest& request, PredictionSink& sink,
                                      core::Diagnostics& diagnostics) override {
    return guarded([&] { return predict_checkpoint(recipe, request, peak_flops(recipe, request), sink, diagnostics); });
  }
  std::optional<GenerationReport> generate(const resolve::Recipe& recipe, const GenerateRequest& request,
                                           GenerationSink& sink, core::Diagnostics& diagnostics) override {
    return guarded([&]() -> std::optional<GenerationReport> {
      const auto generator = engine::open_generator(recipe, request, diagnostics);
      if (generator == nullptr) return std::nullopt;
      return generator->generate(request.prompts, sink, diagnostics);
    });
  }
  std::unique_ptr<TextGenerator> open_generator(const resolve::Recipe& recipe, const GenerateRequest& request,
                                                core::Diagnostics& diagnostics) override {
    auto generator = guarded([&] { return engine::open_generator(recipe, request, diagnostics); });
    if (generator == nullptr) return nullptr;
    return std::make_unique<GuardedGenerator>(std::move(generator));
  }
  std::optional<DataView> view_data(const resolve::Recipe& recipe, const DataRequest& request,
                                    core::Diagnostics& diagnostics) override {
    return guarded([&] { return engine::view_data(recipe, request, diagnostics); });
  }
  std::optional<std::vector<core::Node>> first_records(const std::vector<std::string>& paths, std::int64_t count,
                                                       core::Diagnostics& diagnostics) override {
    return guarded([&] { return components::data::first_records(paths, count, diagnostics); });
  }
  std::optional<DataStats> data_stats(const resolve::Recipe& recipe, const DataRequest& request,
                                      core::Diagnostics& diagnostics) override {
    return guarded([&] { return engine::data_stats(recipe, request, diagnostics); });
  }
  void host_store(int listening, std::uint16_t port) override {
    const auto host = guarded([&] { return distributed::host_store(listening, port); });
    for (;;) pause();  // a signal that does not end the process changes nothing
  }
  std::vector<std::string> self_test(const core::RankInfo& info, double timeout_s) override {
    return guarded([&] { return engine::self_test(info, timeout_s); });
  }
  std::vector<std::string> self_test_nccl(core::ConnectNccl connect, const HoldGpu& hold) override {
    return guarded([&] { return engine::self_test_nccl(connect, hold); });
  }
  MachineLimits measure(const std::string& scratch_dir) override {
    return guarded([&] {
      MachineLimits limits = measure_machine(scratch_dir);
      write_limits(limits);
      return limits;
    });
  }
  train::ArithmeticEnvironment environment(const resolve::Recipe& recipe) override {
    return guarded([&] {
      train::configure_torch(recipe);
      return train::current_environment();
    });
  }
  Versions versions() const override {
    return {TORCH_VERSION, components::cpu_capability(), train::fastest_precision(), at::get_num_threads()};
  }

 private:
  static double peak_flops(const resolve::Recipe& recipe, const EvalRequest& request) {
    const c10::Device device = train::device_of(recipe, request.rank ? request.rank->local_rank : 0);
    return device.is_cpu() ? cpu_peak(recipe) : train::peak_of_gpu(recipe, device, request.gpu_names);
  }

  /// FLOP/s of this machine for the recipe's precision; 0 when not measured.
  static double cpu_peak(const resolve::Recipe& recipe) {
    const auto limits = read_limits(at::get_num_threads());
    if (!limits) return 0.0;
    switch (recipe.precision->mode) {
      case sections::precision::Mode::k32True: return limits->matmul_fp32_flops;
      case sections::precision::Mode::kBf16Mixed:
      case sections::precision::Mode::kBf16True: return limits->matmul_bf16_flops;
      case sections::precision::Mode::k16Mixed: return 0.0;  // not measured
    }
    return 0.0;
  }
};

}  // namespace
}  // namespace runner::engine

/// The symbol that load_engine() looks up in libroux_engine.so.
extern "C" runner::engine::Engine* roux_engine() {
  static runner::engine::LibTorchEngine engine;
  return &engine;
}
