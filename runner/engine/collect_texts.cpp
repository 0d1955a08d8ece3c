#include "runner/engine/collect_texts.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "runner/distributed/process_group.h"
#include "runner/engine/rank_messages.h"

namespace runner::engine {
namespace {

constexpr const char* kSite = "the texts";

// Ranks wait for each other this often, so that passes of different length even out in between, and launch.timeout is
// long for that many of them.
constexpr std::int64_t kPasses = 16;

constexpr char kDone = 'd', kGoesOn = 'g';  // the first byte of a message

}  // namespace

std::vector<std::int64_t> own_sequences(std::int64_t prompts, std::int64_t samples, distributed::ProcessGroup* ranks,
                                        bool together) {
  const std::int64_t size = ranks != nullptr ? ranks->size() : 1, rank = ranks != nullptr ? ranks->rank() : 0;
  std::vector<std::int64_t> mine;
  for (std::int64_t sequence = 0; sequence < prompts * samples; ++sequence) {
    const std::int64_t dealt = together || prompts >= size ? sequence / samples : sequence;
    if (dealt % size == rank) mine.push_back(sequence);
  }
  return mine;
}

void TextCollector::piece(std::int64_t prompt, std::int64_t sample, std::string_view text) {
  sink_.piece(prompt, sample, text);
}

void TextCollector::done(const Generated& generated) {
  ranks_.rank() == 0 ? sink_.done(generated) : append(waiting_, generated);
}

void TextCollector::begin_pass() {
  if (++passes_ % kPasses == 0) exchange(false);
}

bool TextCollector::exchange(bool is_done) {
  const std::vector<std::string> told = ranks_.all_gather((is_done ? kDone : kGoesOn) + waiting_, kSite);
  waiting_.clear();
  for (std::size_t rank = 1; ranks_.rank() == 0 && rank < told.size(); ++rank) {
    for (std::size_t at = 1; at < told[rank].size();) sink_.done(generated_at(told[rank], at));
  }
  return std::all_of(told.begin(), told.end(), [](const std::string& one) { return one.front() == kDone; });
}

GenerationReport TextCollector::finish(const GenerationReport& own) {
  while (!exchange(true)) {
  }
  std::array<double, 3> counts = {static_cast<double>(own.prompt_tokens), static_cast<double>(own.new_tokens),
                                  static_cast<double>(own.decoded_tokens)};
  std::array<double, 2> seconds = {own.prefill_seconds, own.decode_seconds};
  ranks_.begin_all_reduce(at::from_blob(counts.data(), {3}, at::kDouble), "the tokens")->wait();
  ranks_.begin_all_reduce(at::from_blob(seconds.data(), {2}, at::kDouble), "the seconds", distributed::ReduceOp::kMax)
      ->wait();
  return {static_cast<std::int64_t>(counts[0]), static_cast<std::int64_t>(counts[1]),
          static_cast<std::int64_t>(counts[2]), seconds[0], seconds[1]};
}

}  // namespace runner::engine
