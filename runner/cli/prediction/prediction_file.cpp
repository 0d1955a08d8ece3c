#include "runner/cli/prediction/prediction_file.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr const char* kJson = "json";
constexpr const char* kCsv = "csv";

std::string csv_text(const Node& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.as_string();
  return value.is_number() && !value.is_integer() ? core::number_text(value.as_double()) : core::to_json(value, -1);
}

/// A number where the text is one as it would be written: 3 and 0.5, but not 007.
std::optional<Node> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || core::number_text(value) != text) return std::nullopt;
  std::int64_t whole = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (read.ec == std::errc() && read.ptr == end) return Node::integer(whole);
  return Node::floating(value);
}

}  // namespace

PredictionFile::PredictionFile(const std::string& path, const std::string& format) : file_(path), format_(format) {}

std::vector<std::pair<std::string, std::string>> PredictionFile::columns(const Node& row) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const Node::Entry& entry : row.entries()) {
    // One of `probabilities` is a probability.
    const std::string name = entry.key == "probabilities" ? "probability" : entry.key;
    for (const Node::Entry& item : entry.value.entries()) {
      columns.emplace_back(name + "_" + item.key, csv_text(item.value));
    }
    for (std::size_t i = 0; entry.value.is_sequence() && i < entry.value.items().size(); ++i) {
      columns.emplace_back(name + "_" + std::to_string(i + 1), csv_text(entry.value.items()[i]));
    }
    if (!entry.value.is_mapping() && !entry.value.is_sequence()) columns.emplace_back(name, csv_text(entry.value));
  }
  return columns;
}

void PredictionFile::begin(const engine::PredictionNames& names) {
  names_ = names;
  std::vector<Node> numbers;
  for (const std::string& name : names.classes) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
    labels_.push_back(Node::string(name));
  }
  // One type for all of them: "3" is text where another class is "none".
  if (numbers.size() == labels_.size()) labels_ = std::move(numbers);
}

bool PredictionFile::is_target(const std::string& name) const {
  return !names_.has_target && name.starts_with("target");
}

Node PredictionFile::row_of(const engine::Prediction& prediction) const {
  Node row = Node::mapping();
  if (!prediction.unit.empty()) {
    if (!prediction.file.empty()) row.set("file", Node::string(prediction.file));
    row.set(prediction.unit, Node::integer(prediction.number));
  } else {
    row.set("index", Node::integer(prediction.index));
  }
  // The target of new rows is kept as text and comes after the prediction.
  for (const auto& [name, text] : prediction.kept) {
    if (!is_target(name)) row.set(name, Node::string(text));
  }
  switch (prediction.kind) {
    case engine::Prediction::Kind::kClass: add_class(row, prediction); break;
    case engine::Prediction::Kind::kClasses:
    case engine::Prediction::Kind::kTags: add_classes(row, prediction); break;
    case engine::Prediction::Kind::kValues:
      row.set("prediction", values_of(prediction.values));
      if (!prediction.targets.empty()) row.set("target", values_of(prediction.targets));
      break;
    case engine::Prediction::Kind::kTokens: row.set("tokens", Node::integer(prediction.tokens)); break;
    case engine::Prediction::Kind::kAnswer: add_answer(row, prediction); break;
    case engine::Prediction::Kind::kVectors: add_vectors(row, prediction); break;
    case engine::Prediction::Kind::kTensor: break;  // ReturnedTensors writes those
  }
  for (const auto& [name, text] : prediction.kept) {
    if (is_target(name)) row.set(name, text.empty() ? Node::null() : number_of(text).value_or(Node::string(text)));
  }
  if (prediction.loss) row.set("loss", Node::floating(*prediction.loss));
  return row;
}

void PredictionFile::add_class(Node& row, const engine::Prediction& prediction) const {
  Node label = Node::null();
  if (prediction.predicted) {
    const auto best = static_cast<std::size_t>(*prediction.predicted);
    label = best < labels_.size() ? labels_[best] : Node::integer(*prediction.predicted);
  }
  row.set("prediction", std::move(label));
  row.set("probability", Node::floating(prediction.probability));
  if (names_.has_target) row.set("target", labels_.at(static_cast<std::size_t>(prediction.target)));
  row.set("probabilities", probabilities_of(prediction));
}

/// Any number of them, in CSV as one field.
void PredictionFile::add_classes(Node& row, const engine::Prediction& prediction) const {
  const auto list = [this](const std::vector<std::int64_t>& classes) {
    std::vector<Node> names;
    for (const std::int64_t one : classes) names.push_back(labels_.at(static_cast<std::size_t>(one)));
    Node all = Node::sequence(std::move(names));
    return format_ == kCsv ? Node::string(core::to_json(all, -1)) : all;
  };
  row.set("prediction", list(prediction.classes));
  if (names_.has_target) row.set("target", list(prediction.target_classes));
  if (prediction.kind == engine::Prediction::Kind::kClasses) row.set("probabilities", probabilities_of(prediction));
}

void PredictionFile::add_answer(Node& row, const engine::Prediction& prediction) const {
  row.set("prediction", Node::string(prediction.answer));
  row.set("score", Node::floating(prediction.probability));
  if (!names_.has_target) return;
  std::vector<Node> right;
  for (const std::string& one : prediction.answers) right.push_back(Node::string(one));
  Node all = Node::sequence(std::move(right));
  row.set("target", format_ == kCsv ? Node::string(core::to_json(all, -1)) : std::move(all));
}

/// `embedding` of a record's only text, else `embeddings` by the names of its texts.
void PredictionFile::add_vectors(Node& row, const engine::Prediction& prediction) const {
  const auto width = static_cast<std::size_t>(prediction.shape.back());
  const std::size_t texts = prediction.values.size() / width;
  Node named = Node::mapping();
  for (std::size_t i = 0; i < texts; ++i) {
    std::vector<Node> numbers;
    for (std::size_t k = 0; k < width; ++k) {
      numbers.push_back(Node::floating(static_cast<float>(prediction.values[i * width + k])));
    }
    Node vector = Node::sequence(std::move(numbers));
    if (texts == 1) {
      row.set("embedding", std::move(vector));
    } else if (format_ == kCsv) {
      row.set("embedding_" + names_.targets.at(i), std::move(vector));
    } else {
      named.set(names_.targets.at(i), std::move(vector));
    }
  }
  if (!named.entries().empty()) row.set("embeddings", std::move(named));
  if (!prediction.targets.empty()) row.set("target", Node::floating(prediction.targets.front()));
}

Node PredictionFile::probabilities_of(const engine::Prediction& prediction) const {
  Node of_classes = Node::mapping();
  for (std::size_t i = 0; i < names_.classes.size(); ++i) {
    of_classes.set(names_.classes[i], Node::floating(prediction.probabilities.at(i)));
  }
  return of_classes;
}

/// A number; by name where there are several with names, else a list.
Node PredictionFile::values_of(const std::vector<double>& values) const {
  if (values.size() == 1 && names_.targets.size() == 1) return Node::floating(values[0]);
  if (values.size() == names_.targets.size()) {
    Node named = Node::mapping();
    for (std::size_t i = 0; i < values.size(); ++i) named.set(names_.targets[i], Node::floating(values[i]));
    return named;
  }
  std::vector<Node> items;
  for (const double value : values) items.push_back(Node::floating(value));
  return Node::sequence(std::move(items));
}

void PredictionFile::add(const engine::Prediction& prediction) {
  const Node row = row_of(prediction);
  ++rows_;
  if (format_ != kCsv) {
    const char* before = format_ != kJson ? "" : rows_ == 1 ? "[\n" : ",\n";
    return file_.put(before + core::to_json(row, -1) + (format_ == kJson ? "" : "\n"));
  }
  std::string titles, fields;
  for (const auto& [name, text] : columns(row)) {
    if (!titles.empty()) {
      titles += ",";
      fields += ",";
    }
    titles += core::csv_field(name);
    fields += core::csv_field(text);
  }
  file_.put((rows_ == 1 ? titles + "\n" : "") + fields + "\n");
}

void PredictionFile::finish() {
  if (format_ == kJson) file_.put(rows_ == 0 ? "[]\n" : "\n]\n");
  file_.finish();
}

}  // namespace runner::cli
