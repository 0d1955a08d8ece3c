#pragma once

/// What makes ids of text, and text of ids.

#include "components/tokenizer/tokenizer.h"
