#pragma once

#include <string>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/trainer_method.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// The sets of Transformers' scripts and of TRL, as a words::Reader::Rule.
void take_trainer_data(words::Reader& reader, const TrainerMethod& method);

// Shared with the sets of LLaMA-Factory:

/// Whether a name is that of a file of records, or of a table of them.
bool is_record_file(const std::string& path);
/// How records begin, as far as a local file shows it.
enum class RecordForm { kUnknown, kText, kPrompt, kMessages };
RecordForm form_of(const std::string& path);
/// Sets `path`, `subset` and `split` of a block for a data set of the Hub, OWNER/NAME; "" for no subset or split.
void name_data_set(const std::string& name, const std::string& subset, const std::string& split, core::Node& block);
/// What is held out of the training sets, by the key that says so: a part below 1, else a number of records; 0: none.
struct HeldOut {
  std::string key;
  double size = 0;
  bool is_first = false;  ///< the first records; else the last ones, where the tool draws them
};
/// Sets data.train, and data.val of `val` or else of what is held out. Errors: a part of sets that are parts themselves
/// without a known end, or streams, and a number of records of several sets.
void put_sets(words::Reader& reader, std::vector<core::Node> train, std::vector<core::Node> val,
              const HeldOut& held_out, const SetMixture& mixture = {});

}  // namespace runner::cli
