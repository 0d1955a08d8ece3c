#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "components/callback/callback.h"
#include "components/callback/evaluation_selector.h"
#include "components/tensor/tensors.h"
#include "generated/callback/confusion_matrix.h"
#include "runner/core/picture/canvas.h"
#include "runner/core/text/utf8.h"

// C: classes

namespace components::callback::confusion_matrix {
namespace {

using runner::core::Canvas;
using runner::core::Color;
using runner::core::Node;

constexpr std::int64_t kClassesMax = 100;

/// Counts of label (row) and prediction (column). A model may have more classes than the data.
struct Counts {
  std::int64_t classes = 0;
  std::vector<std::int64_t> cells;  ///< [C, C]

  std::int64_t at(std::int64_t label, std::int64_t guess) const {
    return cells[static_cast<std::size_t>(label * classes + guess)];
  }
  std::int64_t of_label(std::int64_t label) const {
    std::int64_t sum = 0;
    for (std::int64_t guess = 0; guess < classes; ++guess) sum += at(label, guess);
    return sum;
  }
  std::int64_t of_guess(std::int64_t guess) const {
    std::int64_t sum = 0;
    for (std::int64_t label = 0; label < classes; ++label) sum += at(label, guess);
    return sum;
  }
};

void add(Counts& counts, const EvalBatch& batch) {
  const at::Tensor& output = batch.tensors.at(kOutput);
  const at::Tensor labels = batch.tensors.at(kTarget).flatten();
  const at::Tensor guesses = at::argmax(output, -1).flatten();
  counts.classes = output.size(-1);
  const std::int64_t cells = counts.classes * counts.classes;
  counts.cells.resize(static_cast<std::size_t>(cells));
  at::Tensor counted = labels.ge(0);
  if (const auto ignored = batch.loss.ignore_index()) counted = counted.logical_and(labels.ne(*ignored));
  const at::Tensor pairs = (labels * counts.classes + guesses).masked_select(counted);
  const at::Tensor sums = at::bincount(pairs, {}, cells).cpu();
  for (std::int64_t i = 0; i < cells; ++i) {
    counts.cells[static_cast<std::size_t>(i)] += sums.const_data_ptr<std::int64_t>()[i];
  }
}

/// `C: cells`, for another process; "" if nothing was counted.
std::string to_text(const Counts& counts) {
  std::string text;
  for (const std::int64_t cell : counts.cells) text += std::to_string(cell) + " ";
  return counts.classes == 0 ? "" : std::to_string(counts.classes) + " " + text;
}

void add(Counts& counts, const std::string& text) {
  std::istringstream numbers(text);
  std::int64_t classes = 0;
  if (!(numbers >> classes)) return;
  counts.classes = classes;
  counts.cells.resize(static_cast<std::size_t>(classes * classes));
  for (std::int64_t& cell : counts.cells) {
    std::int64_t more = 0;
    numbers >> more;
    cell += more;
  }
}

std::vector<std::string> names_of(const data::Dataset& data, std::int64_t classes) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < classes; ++i) names.push_back(data.class_name(i));
  return names;
}

Table matrix_of(const Counts& counts, const std::vector<std::string>& names) {
  Table table{{"label"}, {}};
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (std::int64_t label = 0; label < counts.classes; ++label) {
    std::vector<Node>& row = table.rows.emplace_back();
    row.push_back(Node::string(names[static_cast<std::size_t>(label)]));
    for (std::int64_t guess = 0; guess < counts.classes; ++guess) row.push_back(Node::integer(counts.at(label, guess)));
  }
  return table;
}

double share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// Of each class: samples, precision, recall, F1; NaN when dividing by 0.
Table classes_of(const Counts& counts, const std::vector<std::string>& names) {
  Table table{{"class", "samples", "precision", "recall", "f1"}, {}};
  for (std::int64_t i = 0; i < counts.classes; ++i) {
    const std::int64_t right = counts.at(i, i), samples = counts.of_label(i), guesses = counts.of_guess(i);
    table.rows.push_back({Node::string(names[static_cast<std::size_t>(i)]), Node::integer(samples),
                          Node::floating(share(right, guesses)), Node::floating(share(right, samples)),
                          Node::floating(share(2 * right, samples + guesses))});
  }
  return table;
}

// From white to the blue that charts begin with.
Color shade(double value) {
  const auto part = [value](int full) { return static_cast<std::uint8_t>(std::lround(255 + (full - 255) * value)); };
  return {part(0), part(114), part(178)};
}

/// Rows are labels, columns predictions. Numbers and names where there is room for them.
Canvas picture_of(const Counts& counts, const std::vector<std::string>& names) {
  constexpr int kPicture = 640, kCellMax = 48, kMargin = 110, kTop = 40;
  constexpr int kReadable = 20;  // pixels of a cell
  constexpr std::size_t kNameColumns = 14;
  const auto classes = static_cast<int>(counts.classes);
  const int cell = std::clamp(kPicture / std::max(classes, 1), 5, kCellMax);
  Canvas canvas(kMargin + classes * cell + 10, kTop + classes * cell + 10);
  canvas.text(10, 14, "rows: label, columns: prediction", {.size = 11});
  for (int label = 0; label < classes; ++label) {
    const int top = kTop + label * cell;
    const std::string name(runner::core::first_columns(names[static_cast<std::size_t>(label)], kNameColumns));
    if (cell >= kReadable) {
      const double middle = kMargin + (label + 0.5) * cell;
      canvas.text(kMargin - 6, top + cell / 2.0 + 4, name, {.size = 11, .anchor = Canvas::Anchor::kEnd});
      const auto letters = static_cast<std::size_t>(cell / Canvas::text_width("x", 11));
      canvas.text(middle, kTop - 6, std::string(runner::core::first_columns(name, letters)),
                  {.size = 11, .anchor = Canvas::Anchor::kMiddle});
    }
    for (int guess = 0; guess < classes; ++guess) {
      const std::int64_t count = counts.at(label, guess);
      const std::int64_t of_label = counts.of_label(label);
      const double part = of_label > 0 ? share(count, of_label) : 0.0;
      canvas.fill(kMargin + guess * cell, top, cell - 1, cell - 1, shade(part));
      const std::string number = std::to_string(count);
      if (count == 0 || Canvas::text_width(number, 11) > cell - 3) continue;
      const Color ink = part > 0.5 ? Color{255, 255, 255} : Color{51, 51, 51};
      canvas.text(kMargin + (guess + 0.5) * cell, top + cell / 2.0 + 4, number,
                  {.size = 11, .anchor = Canvas::Anchor::kMiddle, .color = ink});
    }
  }
  return canvas;
}

class ConfusionMatrix final : public Callback {
 public:
  explicit ConfusionMatrix(const Config& config) : selector_(config.every, config.data) {}

  void check_compatibility(const model::Model& model, const data::Dataset& train_data, const Node& block,
                           runner::core::Diagnostics& diagnostics) const override {
    const TensorSpec* target = train_data.signature().find(kTarget);
    std::int64_t classes = target != nullptr ? target->num_classes : 0;
    const std::vector<TensorSpec> outputs = model.outputs();
    const TensorSpec* output = find_spec(outputs, kOutput);
    if (classes > 0 && output == nullptr) check_output_and_target(model, train_data, block, diagnostics);
    if (classes > 0 && output != nullptr) classes = std::max(classes, output->shape.back());
    if (classes == 0) {
      diagnostics.error(block.location(), "confusion_matrix counts classes, but the data has none",
                        "remove it, or use the callback predictions");
    } else if (classes > kClassesMax) {
      diagnostics.error(block.location(),
                        "confusion_matrix supports up to " + std::to_string(kClassesMax) + " classes, and there are " +
                            std::to_string(classes),
                        "use the callback predictions, which keeps the worst samples");
    }
  }

  bool acts_on_step(const Context&) const override { return false; }

  void on_eval_begin(const std::string& name, const data::Dataset& data) override {
    present_ = nullptr;
    if (!selector_.selects(name)) return;
    sets_.insert_or_assign(name, Seen{&data, {}});
    present_ = &sets_.at(name);
  }

  void on_eval_batch(const EvalBatch& batch) override {
    if (present_ != nullptr) add(present_->counts, batch);
  }

  void on_eval_end(Context& context) override {
    present_ = nullptr;
    for (const auto& [set, seen] : sets_) {
      Counts all;
      for (const std::string& of_rank : context.gather(to_text(seen.counts))) add(all, of_rank);
      if (!context.is_logging_rank() || all.classes == 0) continue;
      const std::vector<std::string> names = names_of(*seen.data, all.classes);
      context.log_table(set + "/confusion_matrix", matrix_of(all, names));
      context.log_table(set + "/classes", classes_of(all, names));
      context.log_image(set + "/confusion_matrix_image", "rows: label, columns: prediction", picture_of(all, names));
    }
    sets_.clear();
    selector_.end();
  }

  void save_state(runner::core::StateWriter& writer) const override { selector_.save_state(writer); }
  void load_state(const runner::core::StateReader& reader) override { selector_.load_state(reader); }

 private:
  struct Seen {
    const data::Dataset* data;
    Counts counts;
  };

  EvaluationSelector selector_;
  std::map<std::string, Seen> sets_;  ///< of the evaluation in progress
  Seen* present_ = nullptr;
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs& inputs) {
  if (!check_data_sets(config.data, "confusion_matrix", inputs)) return nullptr;
  return std::make_shared<ConfusionMatrix>(config);
}

}  // namespace components::callback::confusion_matrix
