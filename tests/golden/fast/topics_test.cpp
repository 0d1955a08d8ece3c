// Every file of vectors is read by a test, or listed as one that is not.

#include <catch2/catch.hpp>
#include <iostream>
#include <set>
#include <string>

#include "tests/support/golden.h"

namespace {

/// Each has a reader in tests/golden/fast or tests/golden/torch.
const std::set<std::string> kRead = {"batch_sampler_shard",
                                     "checkpointing",
                                     "collectives",
                                     "control_flow",
                                     "ddp_comm_hooks",
                                     "device_map",
                                     "entities",
                                     "fanova",
                                     "fsdp_zero",
                                     "gguf_blocks",
                                     "grad_scaler",
                                     "gradient_accumulation",
                                     "losses",
                                     "lr_schedules",
                                     "metrics",
                                     "model_sizes",
                                     "models",
                                     "optimizers",
                                     "optimizers_8bit",
                                     "quantisation",
                                     "regret",
                                     "sizes",
                                     "texts",
                                     "tokenizers"};

}  // namespace

TEST_CASE("every file of vectors is read or listed as unread", "[golden]") {
  for (const std::string& topic : tests::golden::topics()) {
    CAPTURE(topic);
    const bool is_unread = tests::golden::is_unread_topic(topic);
    CHECK(kRead.contains(topic) != is_unread);
    if (is_unread) std::cout << topic << ": not covered: no reader\n";
  }
}
