#pragma once

namespace tests::accelerator {

/// A kernel runs now. Throws the error of fail_after() when it is due.
void count_kernel();

}  // namespace tests::accelerator
