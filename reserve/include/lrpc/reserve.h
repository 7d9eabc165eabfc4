// Memory for a daemon while there is none: what it has begun it can finish, and then it begins nothing new.
//
// A program that links this has an operator new that takes from a reserve of its own when malloc(3) fails, and throws
// only when that is used up, too. Not under a sanitizer.
#pragma once

#include <cstddef>

namespace lrpc::reserve {

/// There from the program's start, and touched, so that it is memory indeed.
inline constexpr std::size_t kBytes = 1 << 20;

/// Whether to begin nothing that would stay: half of the reserve is in use, and malloc(3) has nothing. Thread-safe;
/// takes a lock that nobody holds for long.
[[nodiscard]] bool short_of_memory() noexcept;
/// In use now, with what it takes to keep account of that. Thread-safe.
[[nodiscard]] std::size_t used() noexcept;
/// The most that was. Thread-safe.
[[nodiscard]] std::size_t most_used() noexcept;

/// What others never get to, if keep_last_for() has been called.
inline constexpr std::size_t kLast = kBytes / 4;
/// From now on the last part of the reserve is for threads for which `who` returns true: those in places where nothing
/// may throw. `who` allocates nothing, and takes no lock. Null: for all again. Thread-safe.
void keep_last_for(bool (*who)() noexcept) noexcept;

}  // namespace lrpc::reserve
