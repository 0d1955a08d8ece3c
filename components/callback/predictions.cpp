#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
#include "components/callback/eval_samples.h"
#include "components/callback/evaluation_selector.h"
#include "components/callback/picture_grid.h"
#include "components/tensor/tensors.h"
#include "generated/callback/predictions.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::callback::predictions {
namespace {

using runner::core::Node;

constexpr std::size_t kTextColumnsMax = 300;  ///< length of a text in a cell
constexpr std::size_t kIdsMax = 32;           ///< ids without a text

Node text_cell(const std::string& text) {
  return Node::string(std::string(runner::core::first_columns(text, kTextColumnsMax)));
}

/// The text of the ids if they have one, else the ids; without padding.
Node ids_cell(const data::Dataset& data, std::vector<std::int64_t> ids) {
  std::erase_if(ids, [](std::int64_t id) { return id < 0; });
  if (const std::string text = data.decode(ids); !text.empty()) return text_cell(text);
  std::string numbers;
  for (std::size_t i = 0; i < std::min(ids.size(), kIdsMax); ++i)
    numbers += (i == 0 ? "" : " ") + std::to_string(ids[i]);
  return Node::string(numbers + (ids.size() > kIdsMax ? " ..." : ""));
}

std::vector<std::int64_t> ids_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.flatten().contiguous();
  const auto* begin = dense.const_data_ptr<std::int64_t>();
  return {begin, begin + dense.numel()};
}

/// One sample, read again, with its prediction.
struct Reviewed {
  const EvalSample& scored;
  at::Tensor input, target;  ///< without the batch's dimension
  std::vector<std::pair<std::string, Node>> label, prediction;
  bool is_wrong = false;
};

Reviewed review(const data::Dataset& data, const EvalSample& scored) {
  TensorMap batch;
  data.fetch({&scored.index, 1}, batch);
  Reviewed sample{scored, batch.at(kInput)[0], batch.at(kTarget)[0], {}, {}};
  if (sample.target.scalar_type() == at::kLong && sample.target.dim() == 0) {
    const auto label = sample.target.item<std::int64_t>(), guess = static_cast<std::int64_t>(scored.prediction[0]);
    sample.label.emplace_back("label", text_cell(data.class_name(label)));
    sample.prediction.emplace_back("prediction", text_cell(data.class_name(guess)));
    sample.is_wrong = label != guess;
  } else if (sample.target.scalar_type() == at::kLong) {
    const std::vector<std::int64_t> label = ids_of(sample.target);
    std::vector<std::int64_t> guess(scored.prediction.begin(), scored.prediction.end());
    guess.resize(std::min(guess.size(), label.size()));  // a single sample has no padding
    for (std::size_t i = 0; i < guess.size(); ++i) {
      if (label[i] < 0) guess[i] = -1;
    }
    sample.label.emplace_back("label", ids_cell(data, label));
    sample.prediction.emplace_back("prediction", ids_cell(data, guess));
  } else {
    const at::Tensor values = sample.target.flatten().to(at::kDouble).contiguous();
    for (std::size_t i = 0; i < scored.prediction.size(); ++i) {
      const std::string number = scored.prediction.size() > 1 ? " " + std::to_string(i + 1) : "";
      sample.label.emplace_back("label" + number, Node::floating(values.const_data_ptr<double>()[i]));
      sample.prediction.emplace_back("prediction" + number, Node::floating(scored.prediction[i]));
    }
  }
  return sample;
}

Table table_of(const data::Dataset& data, const std::vector<Reviewed>& samples) {
  Table table;
  for (const Reviewed& sample : samples) {
    std::vector<std::pair<std::string, Node>> row = {{"sample", Node::integer(sample.scored.index)}};
    const auto columns = data.columns_of(sample.scored.index);
    row.insert(row.end(), columns.begin(), columns.end());
    if (sample.input.scalar_type() == at::kLong) {
      std::vector<std::int64_t> ids = ids_of(sample.input);
      for (std::size_t i = 0; i < ids.size() && sample.target.dim() == 1; ++i) {
        if (sample.target[static_cast<std::int64_t>(i)].item<std::int64_t>() == kPadTarget) ids[i] = -1;
      }
      row.emplace_back("input", ids_cell(data, std::move(ids)));
    }
    row.insert(row.end(), sample.label.begin(), sample.label.end());
    row.insert(row.end(), sample.prediction.begin(), sample.prediction.end());
    if (sample.target.scalar_type() == at::kLong && sample.target.dim() == 0) {
      row.emplace_back("probability", Node::floating(sample.scored.probability));
    }
    row.emplace_back("loss", Node::floating(sample.scored.loss));
    const bool is_first = table.rows.empty();
    std::vector<Node>& cells = table.rows.emplace_back();
    for (auto& [name, cell] : row) {
      if (is_first) table.columns.push_back(name);
      cells.push_back(std::move(cell));
    }
  }
  return table;
}

std::string said(const Node& cell) {
  return cell.is_string() ? cell.as_string() : runner::core::short_number(cell.as_double(), 3);
}

runner::core::Canvas pictures_of(const std::vector<Reviewed>& samples) {
  std::vector<CaptionedPicture> pictures;
  for (const Reviewed& sample : samples) {
    CaptionedPicture& picture = pictures.emplace_back();
    picture.pixels_CHW = sample.input;
    picture.first_line = said(sample.label[0].second);
    picture.second_line = "> " + said(sample.prediction[0].second);
    if (sample.scored.probability >= 0)
      picture.second_line += " " + runner::core::short_number(sample.scored.probability, 3);
    picture.is_wrong = sample.is_wrong;
  }
  return picture_grid(pictures);
}

class Predictions final : public Callback {
 public:
  explicit Predictions(const Config& config) : config_(config), selector_(config.every, config.data) {}

  void check_compatibility(const model::Model& model, const data::Dataset& train_data, const Node& block,
                           runner::core::Diagnostics& diagnostics) const override {
    check_output_and_target(model, train_data, block, diagnostics);
  }

  bool acts_on_step(const Context&) const override { return false; }

  void on_eval_begin(const std::string& name, const data::Dataset& data) override {
    present_ = nullptr;
    if (!selector_.selects(name)) return;
    sets_.insert_or_assign(name, Seen{&data, EvalSamples(config_.num_samples, config_.worst)});
    present_ = &sets_.at(name);
  }

  void on_eval_batch(const EvalBatch& batch) override {
    if (present_ != nullptr) present_->samples.add(batch);
  }

  void on_eval_end(Context& context) override {
    present_ = nullptr;
    for (auto& [name, seen] : sets_) {
      EvalSamples all(config_.num_samples, config_.worst);
      for (const std::string& of_rank : context.gather(seen.samples.bytes())) all.add(of_rank);
      if (!context.is_logging_rank()) continue;
      log(context, name, "predictions", *seen.data, all.first());
      log(context, name, "worst", *seen.data, all.worst());
    }
    sets_.clear();
    selector_.end();
  }

  void save_state(runner::core::StateWriter& writer) const override { selector_.save_state(writer); }
  void load_state(const runner::core::StateReader& reader) override { selector_.load_state(reader); }

 private:
  struct Seen {
    const data::Dataset* data;
    EvalSamples samples;
  };

  void log(Context& context, const std::string& set, const std::string& what, const data::Dataset& data,
           const std::vector<EvalSample>& scored) const {
    if (scored.empty()) return;
    std::vector<Reviewed> samples;
    for (const EvalSample& sample : scored) samples.push_back(review(data, sample));
    context.log_table(set + "/" + what, table_of(data, samples));
    if (!config_.images || samples[0].input.dim() != 3) return;
    const std::string count = std::to_string(samples.size());
    const std::string which = what == "worst" ? count + " of the largest loss" : "the first " + count;
    context.log_image(set + "/" + what + "_images", which + ": label, > prediction", pictures_of(samples));
  }

  Config config_;
  EvaluationSelector selector_;
  std::map<std::string, Seen> sets_;  ///< of the evaluation that is going on
  Seen* present_ = nullptr;
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs& inputs) {
  if (!check_data_sets(config.data, "predictions", inputs)) return nullptr;
  return std::make_shared<Predictions>(config);
}

}  // namespace components::callback::predictions
