#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "runner/core/json.h"
#include "tests/components/callback/fake_run.h"
#include "tests/components/data/building.h"
#include "tests/support/blocks.h"
#include "tests/support/folder.h"
#include "tests/support/torch/stub_model_torch.h"
#include "tests/support/torch/tensors_torch.h"

using components::Dtype;
using components::TensorMap;
using components::callback::Table;
using components::data::Dataset;
using runner::core::Node;
using tests::FakeRun;

namespace {

std::shared_ptr<components::loss::Loss> loss_for(const std::string& text, const Dataset& data,
                                                 const components::TensorSpec& output) {
  const Node block = tests::block("loss", text);
  runner::core::Diagnostics diagnostics;
  auto loss = components::loss::build(block, {{output}, data.signature(), block, diagnostics});
  REQUIRE(loss != nullptr);
  return loss;
}

/// Samples of a set from one index on, with what a model is made to say of them.
TensorMap judged(const Dataset& data, std::int64_t first, const at::Tensor& output) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(output.size(0)));
  std::iota(indices.begin(), indices.end(), first);
  TensorMap batch;
  data.fetch(indices, batch);
  batch.set(components::kOutput, output);
  return batch;
}

/// Logits that are sure of these classes.
at::Tensor sure_of(const std::vector<std::int64_t>& classes, std::int64_t count) {
  at::Tensor logits = at::zeros({static_cast<std::int64_t>(classes.size()), count});
  for (std::size_t i = 0; i < classes.size(); ++i) logits[static_cast<std::int64_t>(i)][classes[i]] = 4.0;
  return logits;
}

std::string text_of(const Table& table) {
  std::string text;
  for (const std::string& column : table.columns) text += (text.empty() ? "" : ",") + column;
  for (const auto& row : table.rows) {
    text += "\n";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_float = row[i].kind() == Node::Kind::kFloat;
      char number[32];
      std::snprintf(number, sizeof number, "%.4g", is_float ? row[i].as_double() : 0.0);
      text += (i == 0 ? "" : ",") + (is_float ? number : to_json(row[i], -1));
    }
  }
  return text;
}

/// Classes 0, 1, 2, 0, 1, ... by index.
std::shared_ptr<Dataset> images(int count) {
  return tests::good_data("{type: synthetic_images, num_samples: " + std::to_string(count) +
                          ", num_classes: 3, channels: 1, height: 4, width: 8}");
}

const components::TensorSpec kThreeClasses{"output", Dtype::kFloat32, {components::kBatch, 3}};

}  // namespace

TEST_CASE("the first samples and the worst are kept", "[callback][predictions]") {
  const auto data = images(5);
  const auto loss = loss_for("cross_entropy", *data, kThreeClasses);
  const auto callback = tests::build_callback("{type: predictions, num_samples: 2, worst: 2}").callback;
  FakeRun run;
  callback->on_eval_begin("val", *data);
  // Labels are 0, 1, 2, 0, 1: sample 3 is wrong, and one is undecided.
  callback->on_eval_batch({0, judged(*data, 0, sure_of({0, 1, 2}, 3)), *loss});
  at::Tensor rest = sure_of({1, 1}, 3);
  rest[1].fill_(0.0);
  callback->on_eval_batch({3, judged(*data, 3, rest), *loss});
  callback->on_eval_end(run);
  REQUIRE(run.tables_.size() == 2);
  CHECK(run.tables_[0].first == "val/predictions");
  // softmax(4, 0, 0) = 0.9647, -log of it 0.0360; -log(1 / 3) = 1.0986; 4 + 0.0360 where it is wrong.
  CHECK(text_of(run.tables_[0].second) ==
        "sample,label,prediction,probability,loss\n"
        "0,\"0\",\"0\",0.9647,0.03598\n"
        "1,\"1\",\"1\",0.9647,0.03598");
  CHECK(run.tables_[1].first == "val/worst");
  CHECK(text_of(run.tables_[1].second) ==
        "sample,label,prediction,probability,loss\n"
        "3,\"0\",\"1\",0.9647,4.036\n"
        "4,\"1\",\"0\",0.3333,1.099");
  // Two pictures of 96 pixels and gaps of 6 side by side, two lines below.
  CHECK(run.images_ ==
        std::vector<std::string>{"val/predictions_images: the first 2: label, > prediction, 210 x 136",
                                 "val/worst_images: 2 of the largest loss: label, > prediction, 210 x 136"});
}

TEST_CASE("ranks merge what each of them has seen", "[callback][predictions][confusion_matrix]") {
  const auto data = images(6);
  const auto loss = loss_for("cross_entropy", *data, kThreeClasses);
  const at::Tensor outputs = sure_of({0, 0, 2, 1, 1, 1}, 3);
  for (const std::string type : {"predictions, num_samples: 3, worst: 3", "confusion_matrix"}) {
    // One process sees all; of two the second begins in the middle.
    std::vector<std::vector<std::string>> tables;
    for (const int ranks : {1, 2}) {
      std::vector<std::string> handed_over;
      FakeRun run;
      for (int rank = ranks - 1; rank >= 0; --rank) {
        const auto callback = tests::build_callback("{type: " + type + "}").callback;
        callback->on_eval_begin("val", *data);
        const std::int64_t count = 6 / ranks, first = rank * count;
        callback->on_eval_batch({first, judged(*data, first, outputs.narrow(0, first, count)), *loss});
        run.tables_.clear();
        run.gathered_ = [&](const std::string& mine) {
          handed_over.insert(handed_over.begin(), mine);
          return handed_over;
        };
        callback->on_eval_end(run);
      }
      auto& said = tables.emplace_back();
      for (const auto& [name, table] : run.tables_) said.push_back(name + "\n" + text_of(table));
    }
    CHECK(tables[0].size() == 2);
    CHECK(tables[0] == tables[1]);
  }
}

TEST_CASE("a table shows columns as the file has them", "[callback][predictions]") {
  const auto data = tests::good_data(
      "{type: csv_table, path: recipes/examples/data/homes.csv, target: price, normalize: true, missing: mean}");
  const auto loss = loss_for("mse", *data, {"output", Dtype::kFloat32, {components::kBatch, 1}});
  const auto callback = tests::build_callback("{type: predictions, num_samples: 2, worst: 0}").callback;
  FakeRun run;
  callback->on_eval_begin("val", *data);
  callback->on_eval_batch({0, judged(*data, 0, at::full({3, 1}, 400.0)), *loss});
  callback->on_eval_end(run);
  REQUIRE(run.tables_.size() == 1);
  // (418.2 - 400)^2 and (166.1 - 400)^2
  CHECK(text_of(run.tables_[0].second) ==
        "sample,rooms,area_m2,year,heating,balcony,label,prediction,loss\n"
        "0,6,143.7,1993,\"wood\",\"yes\",418.2,400,331.2\n"
        "1,3,67.8,1919,\"gas\",\"yes\",166.1,400,5.471e+04");
  CHECK(run.images_.empty());
}

TEST_CASE("text is shown as text", "[callback][predictions]") {
  const tests::Folder folder;
  folder.write("corpus.txt", "First Citizen:");
  const auto data = tests::good_data("{type: text, path: corpus.txt, max_seq_len: 4}");
  const auto loss =
      loss_for("cross_entropy", *data, {"output", Dtype::kFloat32, {components::kBatch, components::kTime, 256}});
  TensorMap sample;
  const std::int64_t index = 0;
  data->fetch({&index, 1}, sample);
  const at::Tensor target = sample.at(components::kTarget);
  // Right everywhere but at the last position, where it says "x".
  at::Tensor logits = at::zeros({1, 4, 256});
  for (std::int64_t t = 0; t < 4; ++t)
    logits[0][t][t == 3 ? std::int64_t{'x'} : target[0][t].item<std::int64_t>()] = 9.0;
  const auto callback = tests::build_callback("{type: predictions, worst: 0}").callback;
  FakeRun run;
  callback->on_eval_begin("val", *data);
  callback->on_eval_batch({0, judged(*data, 0, logits), *loss});
  callback->on_eval_end(run);
  REQUIRE(run.tables_.size() == 1);
  const Table& table = run.tables_[0].second;
  CHECK(table.columns == std::vector<std::string>{"sample", "input", "label", "prediction", "loss"});
  CHECK(table.rows[0][1].as_string() == "Firs");
  CHECK(table.rows[0][2].as_string() == "irst");
  CHECK(table.rows[0][3].as_string() == "irsx");
}

TEST_CASE("a confusion matrix is logged more rarely in a long run, also after a resume", "[callback][predictions]") {
  const auto data = images(3);
  const auto loss = loss_for("cross_entropy", *data, kThreeClasses);
  auto callback = tests::build_callback("{type: confusion_matrix, data: val, every: 2}").callback;
  std::vector<int> looked;
  for (int evaluation = 1; evaluation <= 300; ++evaluation) {
    FakeRun run;
    for (const std::string set : {"val", "test"}) {
      callback->on_eval_begin(set, *data);
      callback->on_eval_batch({0, judged(*data, 0, sure_of({0, 1, 2}, 3)), *loss});
    }
    callback->on_eval_end(run);
    if (!run.tables_.empty()) looked.push_back(evaluation);
    for (const auto& [name, table] : run.tables_) CHECK(name.starts_with("val/"));
    auto resumed = tests::build_callback("{type: confusion_matrix, data: val, every: 2}").callback;
    tests::hand_over_state(*callback, *resumed);
    callback = resumed;
  }
  REQUIRE(looked.size() == 64 + 32 + 5);  // 2, 4, ..., 128; 132, ..., 256; 264, ...
  CHECK(looked[63] == 128);
  CHECK(looked[64] == 132);
  CHECK(looked[95] == 256);
  CHECK(looked[96] == 264);
}

TEST_CASE("a confusion matrix counts labels by predictions", "[callback][confusion_matrix]") {
  const auto data = images(5);
  const auto loss = loss_for("cross_entropy", *data, kThreeClasses);
  const auto callback = tests::build_callback("{type: confusion_matrix}").callback;
  FakeRun run;
  callback->on_eval_begin("val", *data);
  callback->on_eval_batch({0, judged(*data, 0, sure_of({2, 2}, 3)), *loss});
  callback->on_eval_begin("val", *data);  // an evaluation that was given up counts for nothing
  callback->on_eval_batch({0, judged(*data, 0, sure_of({0, 2, 2, 0, 2}, 3)), *loss});
  callback->on_eval_end(run);
  REQUIRE(run.tables_.size() == 2);
  CHECK(run.tables_[0].first == "val/confusion_matrix");
  CHECK(text_of(run.tables_[0].second) == "label,0,1,2\n\"0\",2,0,0\n\"1\",0,0,2\n\"2\",0,0,1");
  CHECK(run.tables_[1].first == "val/classes");
  CHECK(text_of(run.tables_[1].second) ==
        "class,samples,precision,recall,f1\n\"0\",2,1,1,1\n\"1\",2,nan,0,0\n\"2\",1,0.3333,1,0.5");
  CHECK(run.images_ ==
        std::vector<std::string>{"val/confusion_matrix_image: rows: label, columns: prediction, 264 x 194"});
}

TEST_CASE("data sets that are not evaluated are refused at their location",
          "[callback][predictions][confusion_matrix]") {
  CHECK(
      tests::build_callback("{type: predictions, data: [val, tset]}", {}, {"loss", "val/loss", "test/loss"}).messages ==
      "callback.yaml:1:33: error: no evaluated data set is called \"tset\"\n"
      "  hint: did you mean \"test\"?\n");
  CHECK(tests::build_callback("{type: confusion_matrix}", {}, {"loss"}).messages ==
        "callback.yaml:1:1: error: confusion_matrix needs an evaluated data set, but train is the only data set\n"
        "  hint: add a data set, such as data.val\n");
  const auto values = tests::good_data("{type: synthetic}");
  CHECK(tests::compatibility_errors("{type: confusion_matrix}", *tests::stub_model({}), *values) ==
        "callback.yaml:1:1: error: confusion_matrix counts classes, but the data has none\n"
        "  hint: remove it, or use the callback predictions\n");
}
