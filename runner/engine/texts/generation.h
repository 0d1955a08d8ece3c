#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/rank_info.h"

namespace runner::engine {

/// What text is generated for: a text, or the messages of a conversation.
struct Prompt {
  std::string text;
  std::vector<std::pair<std::string, std::string>> messages;  ///< role and content; not empty: these count
};

/// How text is generated is said by the recipe's section `generation`.
struct GenerateRequest {
  /// As EvalRequest::checkpoint: `best`, `last`, `step-000500`, or a path, of a folder of Transformers, too.
  std::string checkpoint;
  std::string run;  ///< run; "" is the newest one with checkpoints
  std::vector<std::string> adapters =
      {};                            ///< folders of PEFT that are added to those weights; the recipe names them, too
  std::string command = "generate";  ///< the word for hints
  std::vector<Prompt> prompts;
  bool chat = false;        ///< a prompt's text is the user's message, and the model's chat template is applied
  std::string system;       ///< with `chat`: the system message before a text; "": none
  std::string chat_format;  ///< with `chat`: the name of one, or the file of a template; "": as the recipe says, or the
                            ///< template beside the tokenizer
  bool truncate_left = false;   ///< drop the first tokens of a prompt that is too long; otherwise it is an error
  bool logprobs = false;        ///< fill in Generated::logprobs
  std::int64_t batch_size = 0;  ///< sequences at a time; 0: chosen
  std::vector<std::string> gpu_names = {};  ///< of the GPUs that this process sees, as core::gpu_peak() knows them
  std::function<bool()> interrupted;        ///< asked between tokens: true ends the work; may be empty
  /// Among the processes that share out the texts; nothing: a single process.
  std::optional<core::RankInfo> rank = {};
};

/// What was generated for one prompt.
struct Generated {
  std::int64_t prompt = 0;           ///< index in the request
  std::int64_t sample = 0;           ///< below generation.num_return_sequences
  std::string text;                  ///< without the prompt and the end token; a stop string is its end
  std::vector<std::int32_t> tokens;  ///< new ones, the end token included
  std::vector<float> logprobs;       ///< one for each of `tokens`, of the logits as the model gave them, or none
  std::string finish_reason;         ///< `eos`, `length` or `stop`
};

/// How much room a prompt takes.
struct PromptSize {
  std::int64_t tokens = 0;     ///< with those of the chat format
  std::int64_t positions = 0;  ///< of the model, for the prompt and the new tokens together; 0: no limit
};

/// The result of `generate`, without the texts.
struct GenerationReport {
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  std::int64_t decoded_tokens = 0;                 ///< those of the new ones that decode_seconds were spent on
  double prefill_seconds = 0, decode_seconds = 0;  ///< passes with, and without, tokens of a prompt
};

/// Gets the texts while they are made.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  /// Text that follows what this sample of the prompt had; whole characters, and nothing that a stop string cuts off.
  virtual void piece(std::int64_t prompt, std::int64_t sample, std::string_view text) = 0;
  /// Once for each sample of each prompt; of several sequences in no particular order.
  virtual void done(const Generated& generated) = 0;
};

/// A model that has been loaded to generate with, for several calls. What it has computed of a prompt stays: one that
/// begins like an earlier one, as the next turn of a conversation does, is computed from where they differ.
class TextGenerator {
 public:
  virtual ~TextGenerator() = default;
  /// As the request that it was made for says, of which the prompts are left out. Nothing when `diagnostics` got
  /// errors. Texts of all calls are numbered on: with the same prompt and seed, each call draws another text. Of
  /// several ranks, which call it with the same prompts, the sink of rank 0 gets all texts and the report is of all;
  /// the sink gets pieces of texts that its rank makes.
  virtual std::optional<GenerationReport> generate(const std::vector<Prompt>& prompts, GenerationSink& sink,
                                                   core::Diagnostics& diagnostics) = 0;
  /// Nothing when `diagnostics` got errors: the chat format refuses the messages, or there is no token.
  virtual std::optional<PromptSize> measure(const Prompt& prompt, core::Diagnostics& diagnostics) = 0;
};

}  // namespace runner::engine
