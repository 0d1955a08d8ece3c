#pragma once

#include <string>

#include "runner/cli/group/import/trainer_method.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// The sets of Transformers' scripts and of TRL, as a words::Reader::Rule.
void take_trainer_data(words::Reader& reader, const TrainerMethod& method);

// Shared with the sets of LLaMA-Factory:

/// Whether a name is that of a file of records, or of a table of them.
bool is_record_file(const std::string& path);
/// How records begin, as far as a local file shows it.
enum class RecordForm { kUnknown, kText, kPrompt, kMessages, kArray };
RecordForm form_of(const std::string& path);
/// A path in place of a JSON array's, which `jsonl` does not read; tells how to write the file.
std::string lines_of_array(words::Reader& reader, const core::Node& at, const std::string& key,
                           const std::string& path);
/// Sets `path`, `subset` and `split` of a block for a data set of the Hub, OWNER/NAME; "" for no subset or split.
void name_data_set(const std::string& name, const std::string& subset, const std::string& split, core::Node& block);
/// Sets data.train, and data.val of `val` or of what `part` of the records holds out.
void put_sets(words::Reader& reader, std::vector<core::Node> train, std::vector<core::Node> val, double part);

}  // namespace runner::cli
