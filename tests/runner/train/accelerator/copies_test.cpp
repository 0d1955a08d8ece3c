// What is copied between the CPU and another device, and what waits for it.

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "components/tensor/download.h"
#include "components/tensor/random_state.h"
#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

}  // namespace

TEST_CASE("micro-batches are copied aside, and waited for", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = "recipes/smoke/gpt.yaml";
  const auto unsaved = with(kTwentySteps, {"checkpoint={save_at_end: false}"});
  const Trained plain = train_on(kFirst, path, with(unsaved, {"loader.pin_memory=false"}), folder);
  const std::int64_t before = accelerator::late_copies(), unrecorded = accelerator::unrecorded_uses();
  const Trained blocking = train_on(kFirst, path, with(unsaved, {"loader.non_blocking=false"}), folder);
  CHECK(accelerator::late_copies() == before);
  const Trained aside = train_on(kFirst, path, unsaved, folder);
  CHECK(accelerator::late_copies() >= before + 40);  // inputs and targets
  CHECK(accelerator::unrecorded_uses() == unrecorded);
  CHECK(tests::same_bits(*plain.experiment, *blocking.experiment));
  CHECK(tests::same_bits(*plain.experiment, *aside.experiment));
}

TEST_CASE("a checkpoint is copied while the training continues, as the state was at its step", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const std::int64_t before = accelerator::late_copies(), unrecorded = accelerator::unrecorded_uses();
  const auto tensors_at_6 = [&path](const std::string& async_save) {
    const tests::TempDir runs;
    const Trained trained =
        train_on(kFirst, path, {"checkpoint.async_save=" + async_save, "loader.pin_memory=false"}, runs);
    const std::filesystem::path step_6 = std::filesystem::path(trained.checkpoint).parent_path() / "step-000006";
    std::map<std::string, std::string> files;
    for (const char* name : {"model", "optimizer", "weight_average", "random_states_0"}) {
      const std::string file = (step_6 / (std::string(name) + ".safetensors")).string();
      files[name] = core::read_file(file, 1 << 20).value();
    }
    return files;
  };
  const auto late = tensors_at_6("true");
  CHECK(accelerator::late_copies() >= before + 10);  // weights, two moments and the average, at least
  CHECK(accelerator::unrecorded_uses() == unrecorded);
  CHECK(late == tensors_at_6("false"));
}

TEST_CASE("the memory of a save is freed where graphs are captured", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  accelerator::install();
  const std::int64_t copies = accelerator::late_copies(), frees = accelerator::page_locked_frees_elsewhere();
  train_on(kFirst, path, {"checkpoint.save_steps=2", "loader.pin_memory=false"}, folder);
  CHECK(accelerator::late_copies() >= copies + 40);  // four tensors of each of five saves, at least twice as many
  CHECK(accelerator::page_locked_frees_elsewhere() == frees);
}

TEST_CASE("a download has the values of its moment", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kFirst);
  const at::Tensor there = at::ones({4}).to(device);
  components::Download download(device);
  const at::Tensor copy = download(there);
  download.end();
  CHECK(copy.is_pinned());
  CHECK(std::isnan(copy[0].item<float>()));  // the device has not made it yet
  SECTION("when it is waited for") {
    download.wait();
    CHECK(at::equal(copy, at::ones({4})));
  }
  SECTION("although the next kernel changes the tensor") {
    there.fill_(2.0);
    download.wait();
    CHECK(at::equal(copy, at::ones({4})));
    CHECK(there.sum().item<float>() == 8.0F);
  }
  SECTION("or the error of the device") {
    accelerator::fail_after(0, "CUDA error: unspecified launch failure");
    CHECK_THROWS_WITH(download.wait(), Catch::Contains("unspecified launch failure"));
    accelerator::fail_after(0, "");
  }
}

TEST_CASE("without page-locked memory a download waits for its copies", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kSecond);
  const at::Tensor there = at::ones({4}).to(device);
  const std::int64_t before = accelerator::late_copies();
  accelerator::refuse_page_locked_memory(true);
  components::Download download(device);
  const at::Tensor copy = download(there);
  accelerator::refuse_page_locked_memory(false);
  CHECK_FALSE(copy.is_pinned());
  CHECK(at::equal(copy, at::ones({4})));
  CHECK_FALSE(download(there).is_pinned());  // one warning is enough
  CHECK(accelerator::late_copies() == before);
}

TEST_CASE("a copy that nothing waits for is seen", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kFirst);
  const at::Tensor source = at::ones({4}).pin_memory();
  const c10::impl::VirtualGuardImpl guard(device.type());
  const c10::Stream side = guard.getNewStream(device);
  at::Tensor copied;
  {
    const c10::StreamGuard on(side);
    copied = source.to(device, at::kFloat, /*non_blocking=*/true);
  }
  CHECK(std::isnan(copied.sum().item<double>()));  // the event is missing
  c10::Event reached(device.type());
  reached.record(side);
  reached.block(guard.getStream(device));
  source.fill_(2.0);  // the CPU has not waited: the page-locked memory is reused too early
  CHECK(copied.sum().item<double>() == 8.0);
  const std::int64_t unrecorded = accelerator::unrecorded_uses();
  copied.reset();
  CHECK(accelerator::unrecorded_uses() == unrecorded + 1);  // the default stream read it
}

}  // namespace runner::train
