// R: running beams of a prompt   V: vocabulary

#include "components/generation/beams.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "runner/core/error.h"

namespace components::generation {
namespace {

constexpr std::int64_t kRowsOfPass = 2048;  // of prompts, which are longer than that in several passes

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point before) { return std::chrono::duration<double>(Clock::now() - before).count(); }

std::int64_t alike(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

/// One call.
class BeamGenerator::Run {
 public:
  Run(BeamGenerator& generator, std::span<const std::vector<std::int32_t>> prompts,
      std::span<const std::int64_t> numbers, Receiver& receiver)
      : options_(generator.options_),
        decoder_start_(generator.decoder_start_),
        passes_(generator.passes_),
        slots_(generator.slots_),
        prompts_(prompts),
        numbers_(numbers),
        receiver_(receiver),
        sampling_(options_.sampling),
        searches_(slots_.size() / static_cast<std::size_t>(options_.beams.count)) {
    // So that there are continuations that do not end.
    sampling_.min_kept = 1 + std::max<std::int64_t>(1, std::ssize(options_.end_ids));
  }

  Times run() {
    for (;;) {
      if (receiver_.interrupted()) {
        interrupt();
        break;
      }
      for (std::size_t i = 0; i < searches_.size() && next_prompt_ < prompts_.size(); ++i) {
        if (!searches_[i]) begin(i, next_prompt_++);
      }
      if (std::none_of(searches_.begin(), searches_.end(), [](const auto& search) { return search.has_value(); }))
        break;
      step();
    }
    return times_;
  }

 private:
  /// Of one prompt.
  struct Search {
    std::size_t prompt = 0;          // its number among the prompts
    std::int64_t prompt_tokens = 0;  // of the decoder
    BeamSearch beams;
    std::vector<std::size_t> own;  // its slots
    std::vector<std::size_t> at;   // those of the running beams
  };

  /// The beams of a search in a pass.
  struct Fed {
    std::size_t search;
    std::int64_t first_feed;
  };

  void begin(std::size_t place, std::size_t prompt) {
    std::vector<std::size_t> own;
    for (std::int64_t i = 0; i < options_.beams.count; ++i)
      own.push_back(place * static_cast<std::size_t>(options_.beams.count) + static_cast<std::size_t>(i));
    const std::size_t slot = decoder_start_ ? encode(own, prompts_[prompt]) : slot_for(own, prompts_[prompt]);
    const auto length = static_cast<std::int64_t>(slots_[slot].tokens.size());
    std::int64_t most = options_.max_new_tokens;
    if (options_.positions > 0) most = std::max<std::int64_t>(1, std::min(most, options_.positions - length));
    searches_[place].emplace(Search{
        prompt,
        length,
        {options_.beams, {most, options_.end_ids}, {options_.sampling.do_sample, options_.seed, numbers_[prompt]}},
        std::move(own),
        {slot}});
    times_.prompt_tokens += std::ssize(prompts_[prompt]);
  }

  /// The prompt is what the encoder reads, and the decoder begins by itself. What the slots have is of another source.
  std::size_t encode(const std::vector<std::size_t>& own, const std::vector<std::int32_t>& source) {
    const auto before = Clock::now();
    for (const std::size_t slot : own) slots_[slot] = {};
    passes_.encode(static_cast<std::int64_t>(own.front()), source);
    slots_[own.front()] = {{*decoder_start_}, 0};
    times_.prefill_seconds += seconds_since(before);
    return own.front();
  }

  /// The slot that the prompt is computed in, with what any slot has of its beginning.
  std::size_t slot_for(const std::vector<std::size_t>& own, const std::vector<std::int32_t>& prompt) {
    std::size_t source = own.front(), slot = own.front();
    std::int64_t shared = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      // The last token is always computed, for what follows it.
      const std::int64_t same = std::min({alike(slots_[i].tokens, prompt), slots_[i].computed, std::ssize(prompt) - 1});
      if (same <= shared) continue;
      shared = same;
      source = i;
    }
    if (std::find(own.begin(), own.end(), source) != own.end()) slot = source;
    if (slot != source) passes_.copy({static_cast<std::int64_t>(source), 0, shared}, static_cast<std::int64_t>(slot));
    slots_[slot] = {prompt, shared};
    return slot;
  }

  /// One pass: the next token of all beams, and of prompts as many as there is room for.
  void step() {
    std::vector<Feed> feeds;
    std::vector<Fed> fed;
    std::int64_t room = kRowsOfPass;
    bool prefill = false;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      if (!searches_[i]) continue;
      const Search& search = *searches_[i];
      // All beams of a prompt, or none; a search alone may need more room than there is.
      if (room < std::ssize(search.at) && !feeds.empty()) continue;
      fed.push_back({i, std::ssize(feeds)});
      for (const std::size_t at : search.at) {
        Slot& slot = slots_[at];
        const std::int64_t rest = std::ssize(slot.tokens) - slot.computed;
        const std::int64_t some = std::min(rest, std::max<std::int64_t>(1, room));
        prefill = prefill || slot.computed < search.prompt_tokens;
        feeds.push_back({static_cast<std::int64_t>(at), slot.computed,
                         std::span(slot.tokens).first(static_cast<std::size_t>(slot.computed + some))});
        slot.computed += some;
        room -= some;
      }
    }
    const auto before = Clock::now();
    const at::Tensor logits = passes_.run(feeds);
    for (const Fed& one : fed) {
      const Search& search = *searches_[one.search];
      const Slot& last = slots_[search.at.back()];
      if (last.computed < std::ssize(last.tokens)) continue;  // a part of a prompt
      take(one.search, logits.narrow(0, one.first_feed, std::ssize(search.at)));
    }
    (prefill ? times_.prefill_seconds : times_.decode_seconds) += seconds_since(before);
  }

  /// Chooses what follows.
  void take(std::size_t place, const at::Tensor& logits_RV) {
    Search& search = *searches_[place];
    const at::Tensor of_model = at::log_softmax(logits_RV, 1).contiguous();
    const at::Tensor processed = options_.log_probabilities ? of_model.clone() : of_model;
    const auto vocabulary = static_cast<std::size_t>(processed.size(1));
    const std::span all(processed.mutable_data_ptr<float>(), static_cast<std::size_t>(processed.numel()));
    for (std::size_t i = 0; i < search.at.size(); ++i) {
      const std::span<float> row = all.subspan(i * vocabulary, vocabulary);
      const std::vector<std::int32_t>& tokens = slots_[search.at[i]].tokens;
      // A beam that nothing can follow ends without being a text.
      const bool goes_on =
          leave_out(row, {tokens, std::ssize(tokens) - search.prompt_tokens}, options_.left_out, options_.end_ids);
      if (goes_on && !process(row, tokens, sampling_)) return end(place, End::kNotFinite);
    }
    std::span<const float> plain;
    if (options_.log_probabilities) plain = {of_model.const_data_ptr<float>(), all.size()};
    search.beams.advance(
        {all, plain}, [&](std::span<const std::int32_t> made) { return receiver_.ends(first_sequence(search), made); });
    if (search.beams.done()) return end(place, End::kNoneLeft);
    settle(search);
  }

  /// Gives each running beam a slot with what its parent has computed. One stays in the parent's; others get a copy, in
  /// slots of beams that have ended, of what differs there.
  void settle(Search& search) {
    const std::vector<Beam>& running = search.beams.running();
    std::vector<std::size_t> at(running.size()), later;
    std::vector<std::size_t> free = search.own;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto slot = std::find(free.begin(), free.end(), search.at[running[i].parent]);
      if (slot == free.end()) {
        later.push_back(i);
        continue;
      }
      at[i] = *slot;
      free.erase(slot);
    }
    for (const std::size_t i : later) {
      const std::size_t from = search.at[running[i].parent];
      at[i] = free.back();
      free.pop_back();
      const std::int64_t shared = std::min(alike(slots_[at[i]].tokens, slots_[from].tokens), slots_[at[i]].computed);
      passes_.copy({static_cast<std::int64_t>(from), shared, slots_[from].computed - shared},
                   static_cast<std::int64_t>(at[i]));
      slots_[at[i]] = slots_[from];
    }
    for (std::size_t i = 0; i < running.size(); ++i) slots_[at[i]].tokens.push_back(running[i].tokens.back());
    search.at = std::move(at);
  }

  std::size_t first_sequence(const Search& search) const {
    return search.prompt * static_cast<std::size_t>(options_.beams.returned);
  }

  /// Hands over the best texts. `otherwise`: why there are fewer than asked for.
  void end(std::size_t place, End otherwise) {
    const Search& search = *searches_[place];
    std::vector<Beam> texts;
    if (otherwise != End::kNotFinite) texts = search.beams.finished();
    if (otherwise == End::kInterrupted)
      texts.insert(texts.end(), search.beams.running().begin(), search.beams.running().end());
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.beams.returned); ++i) {
      const std::size_t sequence = first_sequence(search) + i;
      const End how = i < texts.size() ? hand_over(sequence, texts[i]) : otherwise;
      receiver_.ended(sequence, otherwise == End::kInterrupted ? otherwise : how);
    }
    searches_[place].reset();
  }

  End hand_over(std::size_t sequence, const Beam& text) {
    times_.new_tokens += std::ssize(text.tokens);
    times_.decoded_tokens += std::max<std::int64_t>(0, std::ssize(text.tokens) - 1);
    for (std::size_t i = 0; i < text.tokens.size(); ++i) {
      const float log_probability =
          options_.log_probabilities ? text.log_probabilities[i] : std::numeric_limits<float>::quiet_NaN();
      const bool goes_on = receiver_.token(sequence, text.tokens[i], log_probability);
      if (std::find(options_.end_ids.begin(), options_.end_ids.end(), text.tokens[i]) != options_.end_ids.end())
        return End::kToken;
      if (!goes_on) return End::kReceiver;
    }
    return End::kLength;
  }

  void interrupt() {
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      if (searches_[i]) end(i, End::kInterrupted);
    }
  }

  const Options& options_;
  std::optional<std::int32_t> decoder_start_;
  Passes& passes_;
  std::vector<Slot>& slots_;
  std::span<const std::vector<std::int32_t>> prompts_;
  std::span<const std::int64_t> numbers_;
  Receiver& receiver_;
  Sampling sampling_;
  std::vector<std::optional<Search>> searches_;
  std::size_t next_prompt_ = 0;
  Times times_;
};

BeamGenerator::BeamGenerator(const Options& options, std::optional<std::int32_t> decoder_start, Passes& passes,
                             std::size_t slots)
    : options_(options), decoder_start_(decoder_start), passes_(passes), slots_(slots) {
  RUNNER_ASSERT(slots % static_cast<std::size_t>(options.beams.count) == 0, "each prompt has a slot for each beam");
  RUNNER_ASSERT(options.beams.returned <= options.beams.count, "the schema asks for no more texts than beams");
}

Times BeamGenerator::generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver,
                              std::span<const std::int64_t> numbers) {
  return Run(*this, prompts, numbers, receiver).run();
}

}  // namespace components::generation
