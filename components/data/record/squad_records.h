#pragma once

#include <memory>
#include <string>

#include "components/data/record/record_source.h"

namespace components::data {

/// The questions of a file in SQuAD's layout, {data: [{title, paragraphs: [{context, qas: [{id, question,
/// answers}]}]}]}, each as the text of a record {id, title, context, question, answers: {text, answer_start}}. A place
/// counts questions. The file is read as a whole. RunError: it is damaged.
std::unique_ptr<RecordSource> squad_records(const std::string& path, const RecordSource::Place& start);

/// Whether a file begins with an object whose first key is `data` or `version`.
bool is_squad_file(const std::string& path);

}  // namespace components::data
