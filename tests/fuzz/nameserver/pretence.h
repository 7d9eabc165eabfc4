// What the nameserver believes about time and about who its peers are, while it is fuzzed. The linker makes it so (see
// CMakeLists.txt), for the whole program.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace lrpc::fuzz {

/// Time stands still but for what passes here, and for a little at each look, so that nobody who waits for it to pass
/// waits for ever.
void let_pass(std::chrono::nanoseconds time) noexcept;
/// Back to the beginning of time.
void restart_time() noexcept;
/// The user that the nameserver takes whoever connects next for; always this process.
void pretend_user(uid_t user) noexcept;

}  // namespace lrpc::fuzz
