#pragma once

#include <string>
#include <vector>

#include "runner/chart/document.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// The last table of each name: where it lies and how it begins. `run_dir`: what paths are relative to.
std::string tables_text(const std::string& run_dir, const std::vector<store::ArtefactRow>& artefacts,
                        const terminal::Terminal& terminal);
/// The last picture of each name: its size and where it lies.
std::string pictures_text(const std::vector<store::ArtefactRow>& artefacts, const terminal::Terminal& terminal);

/// The same on a page, with the pictures. Nothing where a run has neither.
void add_media(const store::RunSummary& run, chart::Document& document);

}  // namespace runner::review
