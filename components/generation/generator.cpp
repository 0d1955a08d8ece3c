#include "components/generation/generator.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include "components/generation/beams.h"
#include "components/generation/passes.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::generation {
namespace {

constexpr std::int64_t kRowsOfPass = 2048;  // of prompts, which are longer than that in several passes
constexpr std::int64_t kWorthAWait = 16;    // tokens that another sequence is about to compute
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// What a slot holds, also after its sequence has ended: the next one may begin alike.
struct Slot {
  std::size_t sequence = kNone;
  std::vector<std::int32_t> tokens;  // prompt and new ones
  std::int64_t prompt = 0;           // how many of them are the prompt
  std::int64_t computed = 0;         // the first of them, that the cache has

  bool busy() const { return sequence != kNone; }
  std::int64_t made() const { return static_cast<std::int64_t>(tokens.size()) - prompt; }
};

std::int64_t alike(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// One call: the slots and what they hold are of the calls before.
class Run {
 public:
  Run(std::span<const std::vector<std::int32_t>> prompts, std::span<const std::int64_t> numbers, const Options& options,
      std::optional<std::int32_t> decoder_start, Receiver& receiver, std::vector<Slot>& slots, Passes& passes)
      : prompts_(prompts),
        numbers_(numbers),
        options_(options),
        decoder_start_(decoder_start),
        receiver_(receiver),
        passes_(passes),
        slots_(slots) {
    for (std::size_t i = 0; i < prompts.size(); ++i) waiting_.push_back(i);
  }

  Times run() {
    for (;;) {
      if (receiver_.interrupted()) {
        interrupt();
        break;
      }
      admit();
      if (std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.busy(); })) break;
      step();
    }
    return times_;
  }

 private:
  /// Gives waiting sequences the free slots, in order. One whose beginning is just being computed waits for it.
  void admit() {
    std::vector<std::size_t> later;
    for (const std::size_t sequence : waiting_) {
      Slot* const slot = free_slot(prompts_[sequence]);
      if (slot == nullptr || !begin(*slot, sequence)) later.push_back(sequence);
    }
    waiting_ = std::move(later);
  }

  /// Of several the one that holds most of the prompt's beginning.
  Slot* free_slot(const std::vector<std::int32_t>& prompt) {
    Slot* best = nullptr;
    std::int64_t most = -1;
    for (Slot& slot : slots_) {
      if (slot.busy()) continue;
      const std::int64_t shared = std::min(alike(slot.tokens, prompt), slot.computed);
      if (shared <= most) continue;
      most = shared;
      best = &slot;
    }
    return best;
  }

  bool begin(Slot& slot, std::size_t sequence) {
    const std::vector<std::int32_t>& prompt = prompts_[sequence];
    if (decoder_start_) return begin_with_source(slot, sequence);
    // The last token is always computed, for what follows it.
    const auto most = static_cast<std::int64_t>(prompt.size()) - 1;
    std::int64_t shared = 0, coming = 0;
    const Slot* source = nullptr;
    for (const Slot& other : slots_) {
      const std::int64_t same = std::min(alike(other.tokens, prompt), most);
      if (std::min(same, other.computed) > shared) {
        shared = std::min(same, other.computed);
        source = &other;
      }
      if (other.busy()) coming = std::max(coming, same);
    }
    if (coming >= shared + kWorthAWait) return false;
    if (source != nullptr) passes_.copy({number_of(*source), 0, shared}, number_of(slot));
    slot = {sequence, prompt, static_cast<std::int64_t>(prompt.size()), shared};
    times_.prompt_tokens += slot.prompt;
    return true;
  }

  /// The prompt is what the encoder reads, and the decoder begins by itself.
  bool begin_with_source(Slot& slot, std::size_t sequence) {
    const std::vector<std::int32_t>& source = prompts_[sequence];
    const auto before = std::chrono::steady_clock::now();
    passes_.encode(number_of(slot), source);
    times_.prefill_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    slot = {sequence, {*decoder_start_}, 1, 0};
    times_.prompt_tokens += std::ssize(source);
    return true;
  }

  std::int64_t number_of(const Slot& slot) const { return &slot - slots_.data(); }

  /// One pass: each sequence's next token, and of prompts as many as there is room for.
  void step() {
    std::vector<Feed> feeds;
    std::vector<Slot*> fed;
    std::int64_t room = kRowsOfPass;
    bool prefill = false;
    for (Slot& slot : slots_) {
      if (!slot.busy()) continue;
      const auto all = static_cast<std::int64_t>(slot.tokens.size());
      const std::int64_t some = std::min(all - slot.computed, room);
      if (some == 0) continue;
      room -= some;
      prefill = prefill || slot.computed < slot.prompt;
      feeds.push_back({number_of(slot), slot.computed,
                       std::span(slot.tokens).first(static_cast<std::size_t>(slot.computed + some))});
      slot.computed += some;
      fed.push_back(&slot);
    }
    const auto before = std::chrono::steady_clock::now();
    const at::Tensor logits = passes_.run(feeds).contiguous();
    const std::int64_t vocabulary = logits.size(1);
    for (std::size_t i = 0; i < fed.size(); ++i) {
      float* const row = logits.mutable_data_ptr<float>() + static_cast<std::int64_t>(i) * vocabulary;
      if (fed[i]->computed == static_cast<std::int64_t>(fed[i]->tokens.size())) {
        take(*fed[i], std::span<float>(row, static_cast<std::size_t>(vocabulary)));
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    (prefill ? times_.prefill_seconds : times_.decode_seconds) += took.count();
    if (!prefill) times_.decoded_tokens += static_cast<std::int64_t>(fed.size());
  }

  /// Chooses what follows.
  void take(Slot& slot, std::span<float> logits) {
    std::vector<float> unchanged;
    if (options_.log_probabilities) unchanged.assign(logits.begin(), logits.end());
    if (!leave_out(logits, {slot.tokens, slot.made()}, options_.left_out, options_.end_ids)) {
      return end(slot, End::kNoneLeft);
    }
    process(logits, slot.tokens, options_.sampling);
    const std::int32_t token = choose(logits, options_.sampling, {options_.seed, numbers_[slot.sequence], slot.made()});
    if (token == kNoToken) return end(slot, End::kNotFinite);
    const float log_probability_of_it =
        options_.log_probabilities ? log_probability(unchanged, token) : std::numeric_limits<float>::quiet_NaN();
    slot.tokens.push_back(token);
    ++times_.new_tokens;
    const bool goes_on = receiver_.token(slot.sequence, token, log_probability_of_it);
    if (std::find(options_.end_ids.begin(), options_.end_ids.end(), token) != options_.end_ids.end()) {
      return end(slot, End::kToken);
    }
    if (!goes_on) return end(slot, End::kReceiver);
    const bool full = !options_.slides && options_.positions > 0 &&
                      static_cast<std::int64_t>(slot.tokens.size()) >= options_.positions;
    if (slot.made() >= options_.max_new_tokens || full) end(slot, End::kLength);
  }

  void end(Slot& slot, End how) {
    receiver_.ended(slot.sequence, how);
    slot.sequence = kNone;
  }

  void interrupt() {
    for (Slot& slot : slots_) {
      if (slot.busy()) end(slot, End::kInterrupted);
    }
  }

  std::span<const std::vector<std::int32_t>> prompts_;
  std::span<const std::int64_t> numbers_;
  const Options& options_;
  std::optional<std::int32_t> decoder_start_;
  Receiver& receiver_;
  Passes& passes_;
  std::vector<Slot>& slots_;
  std::vector<std::size_t> waiting_;
  Times times_;
};

}  // namespace

bool has_cache(const model::Model& model) {
  return std::all_of(model.blocks().begin(), model.blocks().end(),
                     [](const auto& block) { return block->decodes() || block->encodes(); });
}

class Generator::Impl {
 public:
  Impl(const model::Model& model, const Options& options) : model_(model), options_(options) {}

  Times generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver,
                 std::span<const std::int64_t> numbers) {
    RUNNER_ASSERT(numbers.size() == prompts.size(), "each prompt has a number");
    if (prompts.empty() || options_.max_new_tokens <= 0) return {};
    std::size_t longest = 0;
    for (const auto& prompt : prompts) {
      RUNNER_ASSERT(!prompt.empty(), "a prompt has a token");
      longest = std::max(longest, prompt.size());
    }
    const c10::NoGradGuard no_grad;
    const std::int64_t at_a_time = std::max<std::int64_t>(1, options_.batch / options_.beams.count);
    make_room(std::min(static_cast<std::size_t>(at_a_time), prompts.size()),
              (model_.decoder_start() ? 1 : static_cast<std::int64_t>(longest)) + options_.max_new_tokens);
    if (beams_ != nullptr) return beams_->generate(prompts, receiver, numbers);
    return Run(prompts, numbers, options_, model_.decoder_start(), receiver, slots_, *passes_).run();
  }

 private:
  void make_room(std::size_t prompts, std::int64_t positions) {
    const std::size_t slots = prompts * static_cast<std::size_t>(options_.beams.count);
    if (options_.positions > 0 && !options_.slides) positions = std::min(positions, options_.positions);
    if (slots > slots_.size()) {
      slots_.assign(slots, {});
      const bool cached = has_cache(model_) && !options_.slides && !options_.autocast.by_block;
      passes_ = cached ? cached_passes(model_, static_cast<std::int64_t>(slots), positions, options_.autocast)
                       : whole_passes(model_, options_.positions, options_.autocast);
      if (options_.beams.count > 1) {
        RUNNER_ASSERT(!options_.slides, "no beams where texts slide");
        beams_ = std::make_unique<BeamGenerator>(options_, model_.decoder_start(), *passes_, slots);
      }
    }
    passes_->reserve(positions);
  }

  const model::Model& model_;
  Options options_;
  std::vector<Slot> slots_;
  std::unique_ptr<Passes> passes_;
  std::unique_ptr<BeamGenerator> beams_;  // null: tokens are taken one by one
};

Generator::Generator(const model::Model& model, const Options& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Generator::~Generator() = default;

Times Generator::generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver, std::int64_t first) {
  std::vector<std::int64_t> numbers(prompts.size());
  std::iota(numbers.begin(), numbers.end(), first);
  return impl_->generate(prompts, receiver, numbers);
}

Times Generator::generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver,
                          std::span<const std::int64_t> numbers) {
  return impl_->generate(prompts, receiver, numbers);
}

}  // namespace components::generation
