// B: windows   T: tokens of one   Q: questions

#include "runner/train/observe/span_answers.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <limits>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kNumbers = 4;  ///< of a question, that ranks tell each other

/// The tokens with the largest logits, [T]; the largest first.
std::vector<std::int64_t> best_of(const at::Tensor& logits_T) {
  const std::int64_t most = std::min<std::int64_t>(SpanAnswers::kBestOfEach, logits_T.size(0));
  const at::Tensor places = std::get<1>(at::topk(logits_T, most)).contiguous();
  const auto* all = places.const_data_ptr<std::int64_t>();
  return {all, all + most};
}

}  // namespace

SpanAnswers::SpanAnswers(const components::data::Questions& questions)
    : questions_(questions), best_(questions.all.size(), {-kInfinity, 0, 0, kInfinity}) {}

void SpanAnswers::add(std::int64_t first, const components::TensorMap& batch) {
  const at::Tensor logits_BT2 = batch.at(components::kOutput).to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor* mask = batch.find(components::kAttentionMask);
  const at::Tensor real_BT = mask != nullptr ? mask->to(at::kCPU, at::kBool) : at::Tensor();
  for (std::int64_t i = 0; i < logits_BT2.size(0); ++i) {
    const std::int64_t length = real_BT.defined() ? real_BT[i].sum().item<std::int64_t>() : logits_BT2.size(1);
    add_window(questions_.windows[static_cast<std::size_t>(first + i)], logits_BT2[i].narrow(0, 0, length));
  }
}

void SpanAnswers::add_window(const components::data::Questions::Window& window, const at::Tensor& logits_T2) {
  const at::Tensor first_T = logits_T2.select(1, 0).contiguous(), last_T = logits_T2.select(1, 1).contiguous();
  const auto *first = first_T.const_data_ptr<float>(), *last = last_T.const_data_ptr<float>();
  const auto offset = [&](std::int64_t token, std::size_t side) {
    return questions_.offsets[window.at + 2 * static_cast<std::size_t>(token) + side];
  };
  Best& best = best_[window.question];
  best.none = std::min<double>(best.none, first[0] + last[0]);
  const std::vector<std::int64_t> ends = best_of(last_T);
  for (const std::int64_t begin : best_of(first_T)) {
    for (const std::int64_t end : ends) {
      if (end < begin || end - begin + 1 > kLongest || offset(begin, 0) < 0 || offset(end, 0) < 0) continue;
      const float score = first[begin] + last[end];
      if (score <= best.score) continue;
      best.score = score;
      best.begin = offset(begin, 0);
      best.end = offset(end, 1);
    }
  }
}

void SpanAnswers::join(distributed::ProcessGroup& ranks) {
  std::vector<double> mine;
  for (const Best& one : best_) mine.insert(mine.end(), {one.score, one.begin, one.end, one.none});
  for (const at::Tensor& of_rank : ranks.all_gather(at::tensor(mine, at::kDouble), "the answers to questions")) {
    const auto* number = of_rank.const_data_ptr<double>();
    for (Best& one : best_) {
      if (number[0] > one.score) one = {number[0], number[1], number[2], one.none};
      one.none = std::min(one.none, number[3]);
      number += kNumbers;
    }
  }
}

std::optional<SpanAnswers::Answer> SpanAnswers::answer_to(std::size_t question) const {
  const Best& best = best_[question];
  if (best.none == kInfinity) return std::nullopt;
  if (best.score == -kInfinity || (questions_.some_have_none && best.none > best.score)) return Answer{"", best.none};
  return Answer{
      questions_.text_of(question, static_cast<std::int64_t>(best.begin), static_cast<std::int64_t>(best.end)),
      best.score};
}

}  // namespace runner::train
