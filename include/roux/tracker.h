#pragma once

/// A tracker in C++; RecordFile is a file that a resume cuts back.

#include "runner/core/text/text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/record_file.h"
#include "trackers/tracker.h"
