// Sharded trainings of 20 steps beside those of one process: each pair of values of two columns, and by name all of
// them. Ranks are threads.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/ops/kernel_policy.h"
#include "tests/support/folder.h"
#include "tests/support/sharded_recipes.h"
#include "tests/support/torch/sharded_training_torch.h"

namespace runner::train {
namespace {

using Sets = std::vector<std::string>;
using tests::Bf16Curves;
using tests::distance;
using tests::train_on_ranks;
using tests::Trained;

constexpr tests::ShardedSizes kSizes = {.layers = 2, .length = 4, .side = 4, .steps = 20, .batch = 48};
constexpr double kClose = 1e-5, kOfOneProcess = 1.5;  // relative; of bfloat16, its own distance to float32

/// The values of each column: what is sharded; shards x copies; precision; accumulation; checkpointing; model.
const std::vector<Sets> kColumns = {{"optimizer", "gradients", "parameters"},
                                    {"2x1", "3x1", "4x1", "2x2"},
                                    {"32-true", "bf16-mixed"},
                                    {"1", "4"},
                                    {"none", "full"},
                                    {"gpt", "llama", "pictures"}};
enum Column { kShard, kMesh, kPrecision, kAccumulation, kRecomputed, kModel };

std::vector<Sets> all_rows() {
  std::vector<Sets> rows = {{}};
  for (const Sets& column : kColumns) {
    std::vector<Sets> longer;
    for (const Sets& row : rows) {
      for (const std::string& value : column) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

/// Rows that have each pair of values of two columns, taken one by one where they have the most new pairs.
std::vector<Sets> paired_rows() {
  const auto pairs = [](const Sets& row) {
    std::set<std::array<std::string, 2>> found;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) found.insert({std::to_string(j) + row[j], std::to_string(i) + row[i]});
    }
    return found;
  };
  const std::vector<Sets> all = all_rows();
  std::set<std::array<std::string, 2>> open;
  for (const Sets& row : all) open.merge(pairs(row));
  std::vector<Sets> rows;
  while (!open.empty()) {
    std::size_t most = 0;
    const Sets* best = nullptr;
    for (const Sets& row : all) {
      const auto of_row = pairs(row);
      const auto fresh = static_cast<std::size_t>(
          std::count_if(of_row.begin(), of_row.end(), [&](const auto& pair) { return open.contains(pair); }));
      if (fresh > most) {
        most = fresh;
        best = &row;
      }
    }
    for (const auto& pair : pairs(*best)) open.erase(pair);
    rows.push_back(*best);
  }
  return rows;
}

/// Trainings of one process, each made once.
class Alone {
 public:
  const Trained& of(const std::string& model, const Sets& sets) {
    std::string key = model;
    for (const std::string& set : sets) key += " " + set;
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_.emplace(key, train_on_ranks(sets, 1)).first->second;
  }

 private:
  std::map<std::string, Trained> made_;
};

/// What was seen of a row. The file that ROUX_TEST_ROWS names gets a line of JSON for each.
class Seen {
 public:
  explicit Seen(const Sets& row) { line_ = {{"row", row}, {"wrong", nlohmann::json::array()}}; }
  ~Seen() {
    if (const char* path = std::getenv("ROUX_TEST_ROWS")) std::ofstream(path, std::ios::app) << line_ << "\n";
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

  void note(const std::string& what, const nlohmann::json& figure) { line_[what] = figure; }
  void check(const std::string& what, double figure, double most) {
    note(what, figure);
    judge(what, figure <= most, std::to_string(figure) + " of at most " + std::to_string(most));
  }
  void check(const std::string& what, bool holds) { judge(what, holds, "no"); }

 private:
  void judge(const std::string& what, bool holds, const std::string& why) {
    INFO(what << ": " << why);
    CHECK(holds);
    if (!holds) line_["wrong"].push_back(what);
  }

  nlohmann::json line_;
};

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// The gradients of an AdamW training's first step, times what its average begins with.
std::vector<double> first_gradients(const Trained& trained) {
  std::vector<double> all;
  for (const auto& [name, numbers] : trained.first_state) {
    if (name.starts_with("exp_avg.")) all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

/// Trains a row, and once more for `again` steps; with AdamW for as many, or for one where they are fewer than all.
void check_row(const tests::Folder& folder, const Sets& row, int again, Alone& alone) {
  CAPTURE(row);
  Seen seen(row);
  const std::string& model = row[kModel];
  folder.write("recipe.yaml",
               model == "pictures" ? tests::sharded_recipes::pictures(kSizes) : tests::sharded_recipes::text(kSizes));
  const int shards = row[kMesh][0] - '0', copies = row[kMesh][2] - '0', ranks = shards * copies;
  Sets sets = {"training.micro_batch_size=" + std::to_string(kSizes.batch / (ranks * std::stoi(row[kAccumulation])))};
  if (row[kRecomputed] != "none") sets.push_back("activation_checkpointing.mode=" + row[kRecomputed]);
  if (model == "llama") sets.push_back(tests::sharded_recipes::llama(kSizes));
  const Sets sharding = {"parallelism={shard: " + row[kShard] + ", dp_replicate_size: " + std::to_string(copies) + "}"};
  const Trained& whole = alone.of(model, sets);
  const Sets mode = {"precision.mode=" + row[kPrecision]};
  const Trained several = train_on_ranks(with(with(sets, mode), sharding), ranks);
  const bool all = again == kSizes.steps;
  if (row[kPrecision] == "32-true") {
    seen.check("losses", distance(several.losses, whole.losses), kClose);
    seen.check("weights", distance(several.weights, whole.weights), kClose);
    const Sets adamw = {"optimizer={type: adamw, lr: 0.001}",
                        "training.max_steps=" + std::to_string(all ? kSizes.steps : 1)};
    const Trained &of_one = alone.of(model, with(sets, adamw)),
                  of_all = train_on_ranks(with(with(sets, adamw), sharding), ranks);
    seen.check("first gradients of AdamW", distance(first_gradients(of_all), first_gradients(of_one)), kClose);
    if (all) seen.check("losses of AdamW", distance(of_all.losses, of_one.losses), kClose);
  } else {
    Bf16Curves curves;
    for (int i = 0; i < Bf16Curves::kSeeds; ++i) {
      const Sets seed = with(sets, {"seed=" + std::to_string(Bf16Curves::kFirstSeed + i)});
      const Trained other = i == 0 ? Trained() : train_on_ranks(with(with(seed, mode), sharding), ranks);
      curves.add(i == 0 ? several.losses : other.losses, alone.of(model, with(seed, mode)).losses,
                 alone.of(model, seed).losses);
    }
    seen.check("distance to float32 beside one process", curves.ratio(), kOfOneProcess);
    seen.note("the same of each seed's farthest step", curves.of_farthest_steps());
  }
  const Sets fewer = {"training.max_steps=" + std::to_string(again)};
  const Trained twice = train_on_ranks(with(with(with(sets, mode), sharding), fewer), ranks);
  seen.check("the same losses twice", std::equal(twice.losses.begin(), twice.losses.end(), several.losses.begin()));
  if (all) seen.check("the same weights twice", twice.weights == several.weights);
}

/// One process multiplies in bfloat16 on every processor: where it would take longer than float32, its curve would be
/// that of float32, and no measure.
struct Bf16Units {
  Bf16Units() { components::pretend_bf16_units(true); }
  ~Bf16Units() { components::pretend_bf16_units(std::nullopt); }
  Bf16Units(const Bf16Units&) = delete;
  Bf16Units& operator=(const Bf16Units&) = delete;
};

}  // namespace

TEST_CASE("20 sharded steps are those of one process for each pair of what a recipe combines", "[train][sharding]") {
  const Bf16Units units;
  const tests::Folder folder;
  Alone alone;
  for (const Sets& row : paired_rows()) check_row(folder, row, 5, alone);
}

TEST_CASE("20 sharded steps are those of one process for all that a recipe combines", "[.][sharding-product]") {
  const Bf16Units units;
  const tests::Folder folder;
  Alone alone;
  const std::vector<Sets> rows = all_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_row(folder, rows[i], kSizes.steps, alone);
    if (i % 24 != 23) continue;
    std::printf("%zu of %zu rows\n", i + 1, rows.size());
    std::fflush(stdout);
  }
}

}  // namespace runner::train
