// Fakes time and the peers' users for the nameserver while it is fuzzed. The linker replaces the functions in the whole
// program (see CMakeLists.txt).
#pragma once

#include <sys/types.h>

#include <chrono>

namespace lrpc::fuzz {

/// Lets time pass. Otherwise time stands still, except for a little at each reading, so that no loop that waits for a
/// time runs for ever.
void let_pass(std::chrono::nanoseconds time) noexcept;
/// Resets the clock to its initial time.
void restart_time() noexcept;
/// The user that the nameserver sees at the next connections. The process is always this one.
void pretend_user(uid_t user) noexcept;

}  // namespace lrpc::fuzz
