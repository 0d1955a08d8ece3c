#include "runner/store/annotations.h"

#include "runner/core/log.h"
#include "runner/store/schema.h"

namespace runner::store {

Annotations read_annotations(const std::string& run_dir) {
  Annotations annotations;
  try {
    const Database database(annotations_db_path(run_dir), Database::Mode::kRead);
    if (is_empty(database)) return annotations;
    check_format(database, kAnnotationsFormat).value();
    Statement label = database.prepare("SELECT value FROM info WHERE key = 'name'");
    if (label.step()) annotations.label = label.text(0);
    Statement tags = database.prepare("SELECT tag FROM tags ORDER BY tag");
    while (tags.step()) annotations.tags.push_back(tags.text(0));
    Statement notes = database.prepare("SELECT time_ms, text FROM notes ORDER BY row");
    while (notes.step()) annotations.notes.emplace_back(notes.integer(0), notes.text(1));
  } catch (const core::RunError& error) {
    core::log_debug(error.what());
    return {};
  }
  return annotations;
}

}  // namespace runner::store
