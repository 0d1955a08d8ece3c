#include "components/part/rotation.h"

#include <ATen/core/Tensor.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "components/model/rotary_fields.h"
#include "components/tensor/tensors.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/config.h"
#include "tests/support/paths.h"

namespace components::part {
namespace {

using runner::core::Node;

// tests/parity/make.py wrote tests/parity/rope.json: frequencies and factor of Transformers' LlamaRotaryEmbedding.
TEST_CASE("rotary tables are those of Transformers, whatever stretches them", "[rotation][pretrained]") {
  const std::string path = tests::source_dir() + "/tests/parity/rope.json";
  const Node all = runner::core::parse_json(runner::core::read_file(path, 1 << 20).value()).value();
  CHECK(all.items().size() == 19);
  for (const Node& given : all.items()) {
    Node config = *given.find("fields");
    INFO(runner::core::to_json(config, -1) << " at " << given.find("length")->as_integer());
    config.set("model_type", Node::string("llama"));
    config.set("hidden_size", Node::integer(64));
    config.set("num_attention_heads", Node::integer(2));
    runner::core::Diagnostics diagnostics;
    const auto checked = runner::pretrained::check_config(config, diagnostics);
    REQUIRE(checked);
    const std::int64_t head = checked->find("head_dim")->as_integer(), length = given.find("length")->as_integer(),
                       longest = checked->find("max_position_embeddings")->as_integer();
    const Rotation rotation(model::transformers::rotary_of(*checked->find("rope_parameters"), head, longest), longest,
                            false);
    const at::Tensor cos_T1D = rotation.cos(length), sin_T1D = rotation.sin(length);
    const std::vector<Node>& frequencies = given.find("frequencies")->items();
    const double factor = given.find("attention_factor")->as_double();
    REQUIRE(cos_T1D.numel() == length * static_cast<std::int64_t>(frequencies.size()));
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double frequency = frequencies[i].as_double();
      CHECK(sin_T1D[1][0][at].item<double>() == Approx(factor * std::sin(frequency)).epsilon(2e-6));
      // An angle of float32 is rounded by its size.
      const double last = static_cast<double>(length - 1) * frequency, off = 1e-6 + last * 1e-6;
      CHECK(cos_T1D[length - 1][0][at].item<double>() == Approx(factor * std::cos(last)).margin(off).epsilon(0));
    }
  }
}

}  // namespace
}  // namespace components::part
