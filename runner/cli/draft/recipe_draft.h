#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/cli/draft/task.h"

namespace runner::cli {

/// A recipe that is being written.
struct RecipeDraft {
  Task task;
  std::string model, model_type;  ///< as `init_from` has it
  bool is_encoder_decoder = false;
  std::string run_name;
  std::vector<std::string> train, val;  ///< files; no `val`: a part of `train` is held out
  std::int64_t records = 0;             ///< that were counted, of `train`; 0: not known
  bool is_whole_set = false;            ///< `train` is a data set by name, which has splits of its own
  bool is_plain_text = false;           ///< `train` is plain text, not records
  std::int64_t window = 512;            ///< tokens of a sample of it
  std::string chat_format;              ///< "": the model's own
  bool is_adapter = false;              ///< LoRA
  bool has_new_tensors = false;         ///< the head of a language model begins at random, for the model has none
  std::string precision;                ///< "": that of the default
  std::int64_t micro_batch_size = 1;
  std::string why_adapter, why_micro;  ///< for comments
};

/// The recipe, of at most 25 lines, whose comments say why.
std::string text_of(const RecipeDraft& draft);

/// Samples of an optimizer step.
std::int64_t global_batch_of(const RecipeDraft& draft);

}  // namespace runner::cli
