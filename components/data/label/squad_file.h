#pragma once

#include <string>
#include <vector>

namespace components::data {

/// The questions of a file in SQuAD's layout, {data: [{title, paragraphs: [{context, qas: [{id, question,
/// answers}]}]}]}, each as the text of a record {id, title, context, question, answers: {text, answer_start}}. The file
/// is read as a whole. RunError: it is damaged.
std::vector<std::string> squad_records(const std::string& path);

/// Whether a file begins with an object whose first key is `data` or `version`.
bool is_squad_file(const std::string& path);

}  // namespace components::data
