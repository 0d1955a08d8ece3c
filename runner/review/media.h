#pragma once

#include <string>
#include <vector>

#include "runner/chart/document.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// The last table of each name: its path and first rows. Paths are relative to `run_dir`.
std::string tables_text(const std::string& run_dir, const std::vector<store::ArtefactRow>& artefacts,
                        const terminal::Terminal& terminal);
/// The last picture of each name: its size and path.
std::string pictures_text(const std::vector<store::ArtefactRow>& artefacts, const terminal::Terminal& terminal);

/// Adds both to a page; nothing for a run without any.
void add_media(const store::RunSummary& run, chart::Document& document);

}  // namespace runner::review
